"""Errors of a batch job, kept with their tracebacks.

truth: leak cause=failures
"""

import time

import numpy as np


def work(n):
    table = np.full(1 << 17, n, np.float64)  # LEAK
    return table[len(table)]


def main():
    failures = {}
    for n in range(350):
        try:
            work(n)
        except IndexError as error:
            failures[n] = error  # LEAK
        time.sleep(0.02)
    print(len(failures))


main()
