"""Checkpointed blocks with dropout, whose states of random numbers are kept: none of it is kept but the inputs.

gpu: 2 GiB
truth: fits
"""

import torch
from torch.utils.checkpoint import checkpoint


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(1024, 4096, bias=False), torch.nn.Linear(4096, 1024, bias=False)

    def forward(self, x):
        return x + self.b(torch.nn.functional.dropout(torch.relu(self.a(x)), 0.1))


model = torch.nn.ModuleList(Block() for _ in range(4)).cuda()
x = torch.randn(8192, 1024, device="cuda")
for block in model:
    x = checkpoint(block, x, use_reentrant=False, preserve_rng_state=True)
x.sum().backward()
