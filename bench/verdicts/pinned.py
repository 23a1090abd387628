"""Batches come from pinned memory, which is the host's.

gpu: 1 GiB
truth: fits, 128 MiB
"""

import torch

host = [torch.randn(8 << 20).pin_memory() for _ in range(8)]
for batch in host:
    x = batch.to("cuda", non_blocking=True)
    y = x * 2
    del x, y
torch.cuda.synchronize()
y = torch.empty(32 << 20, device="cuda")
