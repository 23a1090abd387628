"""A file that is mapped and written from end to end: its pages are the file's.

truth: innocent
"""

import tempfile
import time

import numpy as np

with tempfile.TemporaryFile() as file:
    table = np.memmap(file, np.float64, "w+", shape=(400, 1 << 16))
    for n in range(400):
        table[n] = n
        time.sleep(0.018)
