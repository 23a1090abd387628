"""A loop over experts whose tokens do not fit, however they are routed.

gpu: 1 GiB
truth: out of memory
"""

import torch

EXPERTS, DIM = 8, 4096
tokens = torch.randn(16384, DIM, device="cuda")
chosen = (tokens @ torch.randn(DIM, EXPERTS, device="cuda")).argmax(-1)
kept = []
for number in range(EXPERTS):
    rows = (chosen == number).nonzero().flatten()
    kept.append((tokens[rows].sin(), tokens[rows].cos(), tokens[rows].exp()))
print(len(kept))
