"""Each turn's result is larger than the one before, and takes its place.

truth: innocent
"""

import time

import numpy as np

for n in range(1, 420):
    grid = np.ones((n * 2, 1024))
    total = grid.sum()
    time.sleep(0.016)
