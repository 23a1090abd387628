"""A pipeline that makes and drops arrays of all sizes.

truth: innocent
"""

import time

import numpy as np

random = np.random.default_rng(0)
weights = random.random((512, 512))
for _ in range(400):
    x = random.random((256, 512)) @ weights
    y = np.tanh(x[: random.integers(16, 256)])
    y.sum()
    time.sleep(0.015)
