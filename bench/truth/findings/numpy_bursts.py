"""Every second a burst of blocks that stay.

truth: leak cause=archive
"""

import time

import numpy as np

archive = []
for second in range(9):
    for n in range(24):
        archive.append(np.full(1 << 17, n, np.float64))  # LEAK
    time.sleep(1)
