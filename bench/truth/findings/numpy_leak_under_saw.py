"""A buffer of two hundred blocks that is emptied all but ten.

truth: leak cause=buffer
"""

import time

import numpy as np

buffer = []
for n in range(500):
    buffer.append(np.full(1 << 16, n, np.float64))  # LEAK
    if n % 100 == 99:
        del buffer[-40:]
    time.sleep(0.015)
