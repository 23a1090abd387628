"""A queue of the fast kind, from which nobody takes.

truth: leak cause=jobs
"""

import queue
import time

import numpy as np

jobs = queue.SimpleQueue()
for _ in range(400):
    jobs.put(np.ones(1 << 17))  # LEAK
    time.sleep(0.02)
