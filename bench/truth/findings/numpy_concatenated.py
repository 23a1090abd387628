"""A history that is copied into a larger array each time.

truth: leak cause=history
"""

import time

import numpy as np

history = np.empty((0, 512))
for _ in range(400):
    rows = np.random.random((32, 512))
    history = np.concatenate([history, rows])  # LEAK
    time.sleep(0.015)
