"""cudaMallocAsync joins what is free: what fixed segments cannot serve, it can.

gpu: 1 GiB
truth: fits
env: PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync
"""

import torch

whole = torch.empty(160 << 20, device="cuda")
del whole
kept = [torch.empty(10 << 20, device="cuda") for _ in range(16)]
for number in range(0, 16, 2):
    kept[number] = None
y = torch.empty(75 << 20, device="cuda")
