"""Segments that grow give back what is free in them, and hold what fixed ones are too scattered for.

gpu: 1 GiB
truth: fits
env: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
"""

import torch

kept = [torch.empty(10 << 20, device="cuda") for _ in range(16)]
for number in range(0, 16, 2):
    kept[number] = None
y = torch.empty(75 << 20, device="cuda")
