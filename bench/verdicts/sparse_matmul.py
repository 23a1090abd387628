"""A sparse matrix of the host's own coordinates, times a dense one.

gpu: 1 GiB
truth: fits
"""

import torch

i = torch.arange(1 << 16).repeat(2, 1)
a = torch.sparse_coo_tensor(i, torch.ones(1 << 16), (1 << 16, 1 << 16)).cuda().coalesce()
y = a @ torch.randn(1 << 16, 512, device="cuda")
