"""Sixteen scans that each keep their whole history for one sum: openxla/xla issue 27322."""

import jax
import jax.numpy as jnp

WIDTH, ROUNDS = 40_000, 16


@jax.jit
def running_sums(totals: jax.Array) -> jax.Array:
    for _ in range(ROUNDS):
        totals, history = jax.lax.scan(lambda kept, one: (kept + one, kept + one), totals, jnp.ones(WIDTH))
        totals = totals + jnp.sum(history, axis=-1)
    return totals


compiled = running_sums.lower(jnp.ones(WIDTH)).compile()
print("temporaries", compiled.memory_analysis().temp_size_in_bytes)
