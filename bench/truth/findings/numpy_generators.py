"""Readers that are opened and not read to their end.

truth: leak cause=readers
"""

import time

import numpy as np

readers = {}


def rows(n):
    table = np.full((1 << 10, 1 << 7), n, np.float64)  # LEAK
    yield from table


for n in range(350):
    reader = rows(n)
    next(reader)
    readers[n] = reader  # LEAK
    time.sleep(0.02)
