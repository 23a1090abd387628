"""A list whose first item goes once there are 330.

truth: innocent
"""

import time

import numpy as np

frames = []
for n in range(430):
    frames.append(np.full(1 << 17, n, np.float64))
    if len(frames) > 330:
        frames.pop(0)
    time.sleep(0.018)
