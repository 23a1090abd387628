"""How often a loop runs is a number that a kernel computed.

gpu: 1 GiB
truth: out of memory
"""

import torch

n = (torch.ones(20, device="cuda") * 3).sum().long()
kept = []
for _ in range(n):  # DECIDES
    kept.append(torch.empty(16 << 20, device="cuda"))
print(len(kept))
