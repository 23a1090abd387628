"""Iterations that keep what they made, until a norm that only a kernel knows is small.

gpu: 1 GiB
truth: out of memory
"""

import torch

x = torch.ones(16 << 20, device="cuda")
kept = []
while torch.linalg.norm(x) > 1e-12:  # DECIDES
    x = x * 0.9
    kept.append(x)
