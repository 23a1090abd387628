"""A cache by the hour of the day: 24 entries, reached after two thirds of the time.

truth: innocent
"""

import time

import numpy as np

cache = {}
for n in range(420):
    hour = min(n // 12, 23)
    if hour not in cache:
        cache[hour] = np.full(1 << 19, hour, np.float64)
    cache[hour].sum()
    time.sleep(0.018)
