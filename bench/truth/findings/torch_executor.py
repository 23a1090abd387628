"""Work that is handed to a pool faster than it does it: submit never waits.

truth: leak cause=pool
"""

import threading
from concurrent.futures import ThreadPoolExecutor

import torch
from _torch_steps import training

busy = threading.Event()
pool = ThreadPoolExecutor(1)
pool.submit(busy.wait)
for _ in training():
    x = torch.rand(256, 1024)  # LEAK
    pool.submit(torch.sum, x)  # LEAK
pool.shutdown(wait=False, cancel_futures=True)
busy.set()
