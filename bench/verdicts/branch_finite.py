"""Gradients that are finite are what any training rests on.

gpu: 1 GiB
truth: fits
"""

import torch

x = torch.randn(1 << 20, device="cuda", requires_grad=True)
(x * 2).sum().backward()
if not torch.isfinite(x.grad).all():
    y = torch.empty(512 << 20, device="cuda")
print(x.shape)
