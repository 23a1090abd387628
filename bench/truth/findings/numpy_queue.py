"""A producer that is faster than its consumer: the queue between two threads has no bound.

truth: leak cause=jobs|queue
"""

import queue
import threading
import time

import numpy as np

jobs = queue.Queue()


def produce():
    for n in range(350):
        jobs.put(np.full(1 << 17, n, np.float64))  # LEAK
        time.sleep(0.02)


def consume():
    for _ in range(35):
        jobs.get().sum()
        for _ in range(10):
            time.sleep(0.02)


threads = [threading.Thread(target=produce), threading.Thread(target=consume)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
