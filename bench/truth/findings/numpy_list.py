"""Results collected in a list that nobody empties.

truth: leak cause=results
"""

import time

import numpy as np

results = []


def simulate(n):
    return np.full(1 << 17, n, np.float64)  # LEAK


for n in range(350):
    results.append(simulate(n))  # LEAK
    time.sleep(0.02)
