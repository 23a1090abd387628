"""Quiet but for large temporaries now and then, larger each time.

truth: innocent
"""

import time

import numpy as np

base = np.ones(1 << 20)
for n in range(420):
    if n % 60 == 50:
        np.concatenate([base] * (4 + n // 60)).sum()
    time.sleep(0.018)
