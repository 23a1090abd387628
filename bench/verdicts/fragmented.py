"""The same with fixed segments: 320 MiB are free in pieces of 40 MiB that cannot be joined, nor returned.

gpu: 1 GiB
truth: out of memory
"""

import torch

whole = torch.empty(160 << 20, device="cuda")
del whole
kept = [torch.empty(10 << 20, device="cuda") for _ in range(16)]
for number in range(0, 16, 2):
    kept[number] = None
y = torch.empty(75 << 20, device="cuda")
