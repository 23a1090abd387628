"""A score is kept as an attribute of a class of another file, whose method compares it: a branch rests on it.

gpu: 1 GiB
truth: out of memory
"""

import torch
from _gate import Gate

gate = Gate()
gate.score = torch.rand(1 << 10, device="cuda").add(1).mean().item()  # DECIDES
if gate.opens():
    torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
