"""One padded token takes the path that needs more.

gpu: 1 GiB
truth: out of memory
"""

import torch

mask = torch.ones(8, 2048, dtype=torch.bool)
mask[3, -1] = False
mask = mask.to("cuda")
if mask.all():
    y = torch.empty(16 << 20, device="cuda")
else:
    y = torch.empty(512 << 20, device="cuda")
print(y.shape)
