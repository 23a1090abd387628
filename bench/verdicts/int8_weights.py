"""Weights of eight bits that each layer unpacks to bfloat16 as it needs them: one layer's at a time.

gpu: 1 GiB
truth: fits, 16 * 16 + 32 MiB
"""

import torch

layers = [torch.zeros(4096, 4096, dtype=torch.int8, device="cuda") for _ in range(16)]
scales = [torch.ones(4096, 1, dtype=torch.bfloat16, device="cuda") for _ in layers]
x = torch.randn(1, 4096, device="cuda", dtype=torch.bfloat16)
with torch.no_grad():
    for weight, scale in zip(layers, scales):
        wide = weight.to(torch.bfloat16)
        wide.mul_(scale)
        x = x @ wide.T
        del wide
