"""Small trainings with TensorFlow, for test_tensorflow.py: each as people write them.

    programs.py NAME        trains, and prints what its parameters, the optimizer's state and a batch take together

Nothing in it knows of hightide. On the CPU, with TF_CPU_ALLOCATOR_USE_BFC=true, it prints the peak of the same kind of
allocator as on a GPU, with every value computed.
"""

import sys

import keras
import tensorflow as tf

WIDTH, BATCH, STEPS = 1024, 2048, 6


def dense():
    return keras.Sequential(
        [keras.layers.Input((WIDTH,)), keras.layers.Dense(4 * WIDTH, activation="relu"), keras.layers.Dense(WIDTH)]
    )


def vectors(rows=BATCH):
    return tf.ones((rows, WIDTH)), tf.zeros((rows, WIDTH))


def stepping(model, optimizer):
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.cast(model(x, training=True), y.dtype) - y) ** 2)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    return step


def loop(model, batch, wrap):
    optimizer = keras.optimizers.Adam()
    step = wrap(stepping(model, optimizer))
    for _ in range(STEPS):
        step(*batch)
    return optimizer


def eager():
    model, batch = dense(), vectors()
    return model, loop(model, batch, lambda step: step), batch


def function():
    model, batch = dense(), vectors()
    return model, loop(model, batch, tf.function), batch


def jit():
    model, batch = dense(), vectors()
    return model, loop(model, batch, lambda step: tf.function(step, jit_compile=True)), batch


def fitted(model, batch, rows, **compiled):
    model.compile(**compiled)
    model.fit(*batch, batch_size=rows, epochs=2, verbose=0)
    return model, model.optimizer, batch


def fit():
    return fitted(dense(), vectors(), BATCH // 4, optimizer="adam", loss="mse")


def on_batch():
    model, batch = dense(), vectors()
    model.compile("adamw", "mse")
    for _ in range(STEPS):
        model.train_on_batch(*batch)
    return model, model.optimizer, batch


def datasets():
    model, batch = dense(), vectors(512)
    data = tf.data.Dataset.from_tensor_slices(vectors(64)).repeat().batch(512).take(STEPS).prefetch(1)
    optimizer = keras.optimizers.SGD(momentum=0.9)
    step = tf.function(stepping(model, optimizer))
    for x, y in data:
        step(x, y)
    return model, optimizer, batch


def convolutions():
    model = keras.Sequential([keras.layers.Input((64, 64, 3))])
    for filters in (32, 64, 128):
        model.add(keras.layers.Conv2D(filters, 3, padding="same", use_bias=False))
        model.add(keras.layers.BatchNormalization())
        model.add(keras.layers.ReLU())
        model.add(keras.layers.MaxPooling2D())
    model.add(keras.layers.Flatten())
    model.add(keras.layers.Dense(10))
    batch = tf.ones((64, 64, 64, 3)), tf.zeros((64,), tf.int32)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return fitted(model, batch, 16, optimizer="sgd", loss=loss)


def recurrent():
    model = keras.Sequential(
        [keras.layers.Input((64,)), keras.layers.Embedding(8192, 256), keras.layers.LSTM(512), keras.layers.Dense(8192)]
    )
    batch = tf.zeros((64, 64), tf.int32), tf.zeros((64,), tf.int32)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return fitted(model, batch, 16, optimizer="adam", loss=loss)


def attention():
    tokens = keras.layers.Input((128, 256))
    x = tokens
    for _ in range(2):
        x = x + keras.layers.MultiHeadAttention(4, 64)(x, x)
        x = x + keras.layers.Dense(256)(
            keras.layers.Dense(1024, activation="gelu")(keras.layers.LayerNormalization()(x))
        )
    model = keras.Model(tokens, x)
    batch = tf.ones((32, 128, 256)), tf.zeros((32, 128, 256))
    return model, loop(model, batch, tf.function), batch


def mixed():
    keras.mixed_precision.set_global_policy("mixed_float16")
    model, batch = dense(), vectors()
    return model, loop(model, batch, tf.function), batch


def size(tensors):
    return sum(tf.TensorShape(each.shape).num_elements() * tf.as_dtype(each.dtype).size for each in tensors)


def main():
    model, optimizer, batch = globals()[sys.argv[1]]()
    gpu = tf.config.list_physical_devices("GPU")
    print("held", size(model.variables) + size(optimizer.variables) + size(batch))
    print("peak", tf.config.experimental.get_memory_info("GPU:0" if gpu else "CPU:0")["peak"])


if __name__ == "__main__":
    main()
