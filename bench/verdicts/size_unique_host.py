"""Different numbers among those that the host wrote.

gpu: 1 GiB
truth: fits, 400 MiB
"""

import torch

ids = (torch.arange(1 << 20) % 100).to("cuda")
rows = torch.unique(ids).numel()
y = torch.empty(rows, 1 << 20, device="cuda")
print(y.shape)
