"""A float is kept by an object and is a size in another method.

gpu: 1 GiB
truth: out of memory
"""

import math

import torch


class Buffer:
    def measure(self, x):
        self.top = x.max().item()  # DECIDES

    def build(self):
        return torch.empty(math.ceil(self.top), 1 << 20, device="cuda")


b = Buffer()
b.measure(torch.rand(1 << 16, device="cuda") + 400)
print(b.build().shape)
