"""A check that raises, and the one who catches it takes more.

gpu: 1 GiB
truth: out of memory
"""

import torch


class Diverged(Exception):
    pass


def check(loss):
    if loss.item() > 2:  # DECIDES
        raise Diverged


try:
    check(torch.rand(1000, device="cuda").mean() + 3)
except Diverged:
    kept = torch.zeros(512 << 20, device="cuda")
