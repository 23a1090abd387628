"""Losses appended to an attribute in one method decide in another.

gpu: 1 GiB
truth: out of memory
"""

import torch


class Trainer:
    def __init__(self):
        self.losses = []

    def step(self, i):
        x = torch.rand(1000, device="cuda") + i
        self.losses.append(x.mean().item())  # DECIDES

    def grow(self):
        if sum(self.losses) / len(self.losses) > 1:
            self.kept = torch.zeros(512 << 20, device="cuda")


t = Trainer()
for i in range(6):
    t.step(i)
    t.grow()
