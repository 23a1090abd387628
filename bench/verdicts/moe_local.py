"""Experts of one rank of four: tokens that chose others are not here.

gpu: 1 GiB
truth: fits
"""

import torch

EXPERTS, K, DIM, FIRST, LAST = 32, 2, 1024, 8, 16
tokens = torch.randn(8192, DIM, device="cuda")
chosen = torch.topk((tokens @ torch.randn(DIM, EXPERTS, device="cuda")).softmax(-1), K).indices
rows, slots = torch.where((chosen >= FIRST) & (chosen < LAST))
local = tokens[rows]
out = [local[chosen[rows, slots] == number] * 2 for number in range(FIRST, LAST)]
print(len(out))
