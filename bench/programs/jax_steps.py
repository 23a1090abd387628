"""Steps of a training in plain JAX, as many as standard input asks for."""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np


def loss(weights: "list[jax.Array]", x: "jax.Array") -> "jax.Array":
    for weight in weights:
        x = jnp.tanh(x @ weight)
    return (x * x).mean()


@jax.jit
def step(weights: "list[jax.Array]", x: "jax.Array") -> "list[jax.Array]":
    return [weight - 0.01 * gradient for weight, gradient in zip(weights, jax.grad(loss)(weights, x))]


random = np.random.default_rng(0)
weights = [jnp.asarray(random.random((512, 512), "float32") / 512) for _ in range(4)]
batches = [random.random((64, 512), "float32") for _ in range(10)]


def train(steps: int) -> None:
    global weights
    for n in range(steps):
        weights = step(weights, batches[n % len(batches)])
    jax.block_until_ready(weights)


train(20)
print("ready", flush=True)
for line in sys.stdin:
    wall, cpu = time.perf_counter(), time.process_time()
    train(int(line))
    print(time.perf_counter() - wall, time.process_time() - cpu, flush=True)
