"""An ordinary loop of JAX: parameters are replaced at each turn.

truth: innocent
in: frameworks
"""

import time

import jax
import jax.numpy as jnp


@jax.jit
def step(w, x):
    return w - 0.01 * jax.grad(lambda w: jnp.square(jnp.tanh(x @ w)).mean())(w)


w = jnp.ones((512, 512))
for n in range(250):
    w = step(w, jnp.full((128, 512), float(n)))
    w.block_until_ready()
    time.sleep(0.02)
