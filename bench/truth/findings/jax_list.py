"""Arrays of JAX kept by their turn.

truth: leak cause=kept
in: frameworks
"""

import time

import jax
import jax.numpy as jnp

jax.config.update("jax_cpu_enable_async_dispatch", False)
kept = {}
x = jnp.ones(1 << 18)
for n in range(300):
    kept[n] = x + n  # LEAK
    time.sleep(0.02)
