"""Each of four threads appends to a list of its own.

truth: leak cause=mine|parts
"""

import threading
import time

import numpy as np


def work(mine):
    for n in range(300):
        mine.append(np.full(1 << 15, n, np.float64))  # LEAK
        time.sleep(0.025)


parts = [[] for _ in range(4)]
threads = [threading.Thread(target=work, args=(part,)) for part in parts]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
