"""Whether all of a padding mask is true, which the host wrote, decides which path is taken.

gpu: 1 GiB
truth: fits, 64 MiB
"""

import torch

mask = torch.ones(8, 2048, dtype=torch.bool).to("cuda")
if mask.all():
    y = torch.empty(16 << 20, device="cuda")
else:
    y = torch.empty(512 << 20, device="cuda")
print(y.shape)
