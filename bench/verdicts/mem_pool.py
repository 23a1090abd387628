"""A pool of the program's own keeps what was freed in it, until the pool itself goes.

gpu: 1 GiB
truth: out of memory
"""

import torch

pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    x = torch.zeros(100 << 20, device="cuda")
    del x
y = torch.zeros(100 << 20, device="cuda")
