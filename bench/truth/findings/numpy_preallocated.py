"""An array for all results, made at the beginning and filled as they come.

truth: innocent
"""

import time

import numpy as np

results = np.zeros((420, 1 << 16))
for n in range(420):
    results[n] = np.random.random(1 << 16)
    time.sleep(0.018)
