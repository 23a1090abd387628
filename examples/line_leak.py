"""Fits a line to noise by gradient descent, and keeps every batch: a leak, as it happens."""

import random

history = []


def batch(size):
    xs = [random.random() for _ in range(size)]
    return xs, [3 * x + 1 + random.gauss(0, 0.1) for x in xs]


def step(w, b, xs, ys):
    errors = [w * x + b - y for x, y in zip(xs, ys)]
    history.append((xs, ys, errors))
    n = len(xs)
    return w - 0.1 * sum(e * x for e, x in zip(errors, xs)) / n, b - 0.1 * sum(errors) / n


w = b = 0.0
for _ in range(300):
    w, b = step(w, b, *batch(20000))
print(f"w {w:.2f}, b {b:.2f}")
