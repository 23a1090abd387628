"""25 products of a matrix of half floats, kept and recomputed in fives: what a test of TensorFlow's own bounds on GPUs."""

from collections.abc import Callable

import tensorflow as tf

SIDE, CHAIN = 500, 5


def products(value: tf.Tensor) -> tf.Tensor:
    for _ in range(CHAIN):
        value = tf.matmul(value, value)
    return value


def gradient_of(block: Callable[[tf.Tensor], tf.Tensor]) -> Callable[[tf.Tensor], tf.Tensor]:
    def step(start: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(start)
            value = start
            for _ in range(CHAIN):
                value = block(value)
            corner = value[0][0]
        return tape.gradient(corner, start)

    return step


matrix = tf.ones((SIDE, SIDE), tf.float16)
for name, block in (("kept", products), ("recomputed", tf.recompute_grad(products))):
    for mode, call in (("eager", gradient_of(block)), ("graph", tf.function(gradient_of(block)))):
        tf.config.experimental.reset_memory_stats("GPU:0")
        call(matrix)
        print(f"{name}-{mode}", tf.config.experimental.get_memory_info("GPU:0")["peak"])
