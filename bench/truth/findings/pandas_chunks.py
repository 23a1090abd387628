"""Chunks of a file, all kept though only their sums are wanted.

truth: leak cause=chunks
in: bench
"""

import time

import numpy as np
import pandas as pd


def read(n):
    return pd.DataFrame({"a": np.full(1 << 16, n, np.float64), "b": np.arange(1 << 16)})  # LEAK


def main():
    chunks, total = [], 0.0
    for n in range(300):
        chunk = read(n)
        chunks.append(chunk)  # LEAK
        total += chunk["a"].sum()
        time.sleep(0.02)
    print(total, len(chunks))


main()
