"""Tensors that come and go; oneDNN is off.

truth: innocent
in: frameworks
env: TF_ENABLE_ONEDNN_OPTS=0
"""

import time

import tensorflow as tf

x = tf.random.normal([256, 256])
for n in range(300):
    y = tf.tanh(x @ x)
    z = tf.fill([1 << 18], float(n)) * 2.0
    time.sleep(0.02)
