"""Half of the time is fine; then each turn keeps a copy.

truth: leak cause=copies
"""

import time

import numpy as np

copies = []
base = np.ones(1 << 17)
for n in range(450):
    scaled = base * n
    if n > 180:
        copies.append(scaled.copy())  # LEAK
    time.sleep(0.02)
