"""Rows divided by the root of their mean, the input donated: openxla/xla pull request 10803."""

import jax
import jax.numpy as jnp


def normalised(values: jax.Array, offset: jax.Array) -> jax.Array:
    mean = jnp.sum(values, axis=1, keepdims=True) / values.shape[1]
    return values * jax.lax.rsqrt(mean) + offset


sample = jax.random.uniform(jax.random.PRNGKey(0), (128, 128))
needs = jax.jit(normalised, donate_argnums=(0,)).lower(sample, sample).compile().memory_analysis()
print("arguments", needs.argument_size_in_bytes)
print("outputs", needs.output_size_in_bytes)
print("donated", needs.alias_size_in_bytes)
print("temporaries", needs.temp_size_in_bytes)
