"""A mask and its opposite select all elements together.

gpu: 1 GiB
truth: fits
"""

import torch

x = torch.randn(1 << 15, 1 << 10, device="cuda")
mask = x[:, 0] > 0
above, below = x[mask], x[~mask]
both = torch.cat([above * 2, below * 3])
print(both.shape)
