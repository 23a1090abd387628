"""Each turn works on a larger array than the one before, and keeps nothing.

truth: innocent
"""

import time

import numpy as np


def solve(n):
    grid = np.ones((n * 2, 1024))
    return float((grid * 2).sum())


def main():
    for n in range(1, 400):
        last = solve(n)
        time.sleep(0.015)
    print(last)


main()
