"""Writes a profile of tf.profiler with memory events: python tf_profile.py FOLDER, with TF_ENABLE_ONEDNN_OPTS=1."""

import sys

import tensorflow as tf

options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)


@tf.function
def total(x):
    return tf.reduce_sum(tf.matmul(x, x, transpose_b=True))


kept = []
tf.profiler.experimental.start(sys.argv[1], options=options)
for step in range(5):
    with tf.profiler.experimental.Trace("train", step_num=step):
        made = tf.random.normal([512, 1024])
        kept.append(made + 1.0)
total(kept[0])
tf.profiler.experimental.stop()
