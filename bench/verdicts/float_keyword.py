"""A float is given by keyword to a method that keeps it; a property decides.

gpu: 1 GiB
truth: out of memory
"""

import torch


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n=1):
        self.total += value * n
        self.count += n

    @property
    def average(self):
        return self.total / self.count


class Loop:
    def __init__(self):
        self.meter = Meter()

    def step(self, i):
        x = torch.rand(1000, device="cuda") + i
        self.meter.update(value=x.mean().item(), n=10)  # DECIDES

    def finish(self):
        if self.meter.average > 1:
            self.kept = torch.zeros(512 << 20, device="cuda")


loop = Loop()
for i in range(4):
    loop.step(i)
loop.finish()
