"""A loop that ends where a loss that was read is no longer finite: it is taken to be, so that this decides nothing.

gpu: 1 GiB
truth: fits, 32 MiB
"""

import math

import torch

weight = torch.randn(1 << 21, device="cuda", requires_grad=True)
for _ in range(4):
    loss = (weight * weight).mean()
    value = loss.item()
    if not math.isfinite(value):
        torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    loss.backward()
    weight.grad = None
