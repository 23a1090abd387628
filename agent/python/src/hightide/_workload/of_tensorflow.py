"""TensorFlow: tf.keras's layers, and a tf.function of one's own for each step."""

from __future__ import annotations

import os
from typing import Any

from . import keras_layers, own
from .models import MODELS, batches
from .options import DTYPES, Built, Options, Unavailable

PACKAGE = "tensorflow"


def build(options: Options) -> Built:
    """Make the model and its step.

    Raises:
        Unavailable: this TensorFlow reaches no GPU, and one is asked for.
        Unknown: there is no such model.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # else it tells of its processor instructions
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import tensorflow as tf

    need_device(tf, options)
    tf.random.set_seed(options.seed)
    if options.model not in MODELS:
        return own.build(options)
    tf.keras.mixed_precision.set_global_policy(DTYPES[options.dtype])
    model = keras_layers.model_of(tf.keras, options.model, options.seq_len)
    return Built(_step(tf, model, options), keras_layers.count(model))


def need_device(tf: Any, options: Options) -> None:
    """Keep TensorFlow to the device that is asked for; its GPUs grow as they need."""
    gpus = tf.config.list_physical_devices("GPU")
    if options.device == "cpu":
        tf.config.set_visible_devices([], "GPU")
    elif not gpus:
        raise Unavailable(f"TensorFlow {tf.__version__} reaches no GPU here")
    else:
        for gpu in gpus:
            tf.config.experimental.set_memory_growth(gpu, True)


def _step(tf: Any, model: Any, options: Options) -> Any:
    draw = batches(MODELS[options.model], options.seq_len, options.seed, channels_first=False)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.Adam(1e-3)

    @tf.function  # type: ignore[untyped-decorator]  # tensorflow is not there when types are checked
    def train(inputs: Any, wanted: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(wanted, model(inputs, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    @tf.function  # type: ignore[untyped-decorator]  # as above
    def infer(inputs: Any) -> Any:
        return model(inputs, training=False)

    def step(n: int) -> None:
        inputs, wanted = (tf.constant(array) for array in draw(n))
        (train(inputs, wanted) if options.train else infer(inputs)).numpy()  # waits

    return step
