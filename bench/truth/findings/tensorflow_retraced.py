"""A tf.function called with Python numbers: traced anew for each.

truth: leak cause=trac
in: frameworks
env: TF_ENABLE_ONEDNN_OPTS=0
"""

import tensorflow as tf


@tf.function  # LEAK
def scaled(x, k):  # LEAK
    for i in range(40):
        x = x * k + i  # LEAK
    return x


x = tf.ones([16])
for n in range(170):
    scaled(x, n)  # LEAK
