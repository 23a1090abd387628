"""Tensors kept in a list; TensorFlow's oneDNN, which has an arena of its own, is off.

truth: leak cause=kept
in: frameworks
env: TF_ENABLE_ONEDNN_OPTS=0
"""

import time

import tensorflow as tf

kept = []
for n in range(300):
    made = tf.fill([1 << 18], float(n))
    kept.append(made + 1.0)  # LEAK
    time.sleep(0.02)
