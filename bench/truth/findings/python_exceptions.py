"""Exceptions that are collected: each keeps its traceback, and with it the buffer of the function that raised it.

truth: leak cause=errors
"""

import time

errors = []


def work(n):
    buffer = bytearray(400_000)  # LEAK
    if n % 2:
        raise ValueError(len(buffer))


for n in range(600):
    try:
        work(n)
    except ValueError as error:
        errors.append((n, error))  # LEAK
    time.sleep(0.005)
