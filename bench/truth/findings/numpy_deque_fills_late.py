"""A window of the last 380 arrays, full after four fifths of the time.

truth: innocent
"""

import time
from collections import deque

import numpy as np

window = deque(maxlen=380)
for n in range(470):
    window.append(np.full(1 << 16, n, np.float64))
    time.sleep(0.018)
