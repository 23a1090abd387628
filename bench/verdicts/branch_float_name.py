"""The threshold is a name, and below zero.

gpu: 1 GiB
truth: out of memory
"""

import torch

LIMIT = -3.5
low = torch.rand(1 << 16, device="cuda").mul(-1).sub(400).min()
value = float(low)  # DECIDES
if value < LIMIT:
    y = torch.empty(512 << 20, device="cuda")
else:
    y = torch.empty(1 << 20, device="cuda")
print(y.shape)
