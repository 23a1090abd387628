"""A list that is an argument gets the losses; the caller decides.

gpu: 1 GiB
truth: out of memory
"""

import torch


def note(history, x):
    history.append(x.mean().item())  # DECIDES


history = []
for i in range(4):
    note(history, torch.rand(1000, device="cuda") + i)
if history[-1] > 1:
    kept = torch.zeros(512 << 20, device="cuda")
