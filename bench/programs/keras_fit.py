"""Batches of Keras's fit, as many as standard input asks for; KERAS_BACKEND chooses the backend."""

import sys
import time

import keras
import numpy as np

BATCH = 32
random = np.random.default_rng(0)
x, y = random.random((BATCH * 200, 256), "float32"), random.integers(0, 10, BATCH * 200)
model = keras.Sequential([keras.layers.Dense(1024, "relu"), keras.layers.Dense(1024, "relu"), keras.layers.Dense(10)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))


def fit(batches: int) -> None:
    model.fit(x[: batches * BATCH], y[: batches * BATCH], batch_size=BATCH, verbose=0)


fit(20)
fit(20)
print("ready", flush=True)
for line in sys.stdin:
    wall, cpu = time.perf_counter(), time.process_time()
    fit(int(line))
    print(time.perf_counter() - wall, time.process_time() - cpu, flush=True)
