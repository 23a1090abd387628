"""Scores go to the host as a tensor, and are chosen from there by a mask.

gpu: 1 GiB
truth: out of memory
"""

import torch

x = torch.rand(1 << 12, device="cuda") + 1
scores = x.cpu()  # DECIDES
chosen = scores[scores > 0.5]
y = torch.empty(chosen.numel(), 1 << 18, device="cuda")
print(y.shape)
