"""The gradient of two tanh of 250,000 values, in a session whose graph is run as written: cybertronai/gradient-checkpointing."""

import tensorflow as tf

v1 = tf.compat.v1
with tf.Graph().as_default():
    first = tf.fill((250_000,), tf.constant(1.0))
    gradient = tf.gradients(tf.tanh(tf.tanh(first)), [first])[0]
    plain = v1.GraphOptions(optimizer_options=v1.OptimizerOptions(opt_level=v1.OptimizerOptions.L0))
    plain.rewrite_options.disable_meta_optimizer = True
    with v1.Session(config=v1.ConfigProto(graph_options=plain)) as session:
        session.run(gradient.op)
print("peak", tf.config.experimental.get_memory_info("GPU:0")["peak"])
