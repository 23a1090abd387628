"""Three numbers are kept of each array, and with them the whole array: a view.

truth: leak cause=tops
"""

import time

import numpy as np

tops = []
for _ in range(350):
    scores = np.random.random(1 << 17)  # LEAK
    tops.append(scores[:3])  # LEAK
    time.sleep(0.02)
