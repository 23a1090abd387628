"""A branch inside the graph, torch.cond: one side takes a large temporary, the other none.

gpu: 1 GiB
truth: out of memory
"""

import torch


def large(x):
    return (x.repeat(64) * 2).view(64, -1).sum(0)


def small(x):
    return x * 2


x = torch.ones(4 << 20, device="cuda")
y = torch.cond(x.sum() > 0, large, small, (x,))  # DECIDES
