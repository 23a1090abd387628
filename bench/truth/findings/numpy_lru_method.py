"""lru_cache on a method keeps every object that the method was called on.

truth: leak cause=lru_cache|spectrum
"""

import functools
import time

import numpy as np


class Signal:
    def __init__(self, n):
        self.values = np.full(1 << 17, n, np.float64)  # LEAK

    @functools.lru_cache(maxsize=None)  # LEAK
    def spectrum(self):  # LEAK
        return float(self.values.sum())


for n in range(350):
    Signal(n).spectrum()
    time.sleep(0.02)
