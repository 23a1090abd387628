"""A data set is loaded for a third of the time; then it is worked with.

truth: innocent
"""

import time

import numpy as np

data = []
for n in range(150):
    data.append(np.full(1 << 17, n, np.float64))
    time.sleep(0.018)
for n in range(300):
    sum(part[n] for part in data)
    time.sleep(0.018)
