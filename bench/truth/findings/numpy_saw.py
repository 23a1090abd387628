"""A buffer that is filled and emptied, nine times.

truth: innocent
"""

import time

import numpy as np

buffer = []
for n in range(450):
    buffer.append(np.full(1 << 17, n, np.float64))
    if len(buffer) == 50:
        np.stack(buffer).mean()
        buffer.clear()
    time.sleep(0.016)
