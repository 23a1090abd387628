"""Lengths that a kernel computed, read as a list, become sizes.

gpu: 1 GiB
truth: out of memory
"""

import torch

scores = torch.rand(64, device="cuda")
lengths = (scores * 0 + 50_000).long().tolist()  # DECIDES
kept = [torch.empty(n, 128, device="cuda") for n in lengths]
print(len(kept))
