"""A megabyte and a half a second, beside temporaries of a hundred.

truth: leak cause=notes
"""

import time

import numpy as np

notes = []
for n in range(500):
    large = np.random.random(1 << 19)
    notes.append(large[: 1 << 12].copy())  # LEAK
    time.sleep(0.015)
