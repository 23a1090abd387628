"""A compiled function works on in the place of known positions.

gpu: 1 GiB
truth: out of memory
"""

import torch


@torch.compile
def positions(ids, scale):
    order = torch.sort(ids).values
    return order * (scale > -1).sum()


ids = torch.arange(1024).cuda()
scale = torch.rand(1024, device="cuda")
n = int(positions(ids, scale).max())  # DECIDES
kept = torch.zeros(n, 1 << 9, device="cuda")
