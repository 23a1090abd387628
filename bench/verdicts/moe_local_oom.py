"""The same, where what even a fair share of the tokens needs is too much.

gpu: 1 GiB
truth: out of memory
"""

import torch

EXPERTS, K, DIM, FIRST, LAST = 16, 4, 2048, 8, 16
tokens = torch.randn(16384, DIM, device="cuda")
chosen = torch.topk((tokens @ torch.randn(DIM, EXPERTS, device="cuda")).softmax(-1), K).indices
rows, slots = torch.where((chosen >= FIRST) & (chosen < LAST))  # DECIDES
local = tokens[rows]
hidden = local.sin()
out = hidden * local
print(out.shape)
