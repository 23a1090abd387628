"""Functions that close over an array, registered for the end of the program.

truth: leak cause=at_end
"""

import time

import numpy as np

at_end = []


def plan(values):
    at_end.append(lambda: values.sum())  # LEAK


for n in range(350):
    plan(np.full(1 << 17, n, np.float64))  # LEAK
    time.sleep(0.02)
