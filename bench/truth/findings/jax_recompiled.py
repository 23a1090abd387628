"""A jitted function called with ever other shapes: a program is compiled and kept for each.

truth: leak cause=compil
in: frameworks
"""

import jax
import jax.numpy as jnp


@jax.jit  # LEAK
def total(x):  # LEAK
    for i in range(20):
        x = jnp.sin(x) * i + 1.0  # LEAK
    return x.sum()


for n in range(110):
    total(jnp.ones(n + 1))  # LEAK
