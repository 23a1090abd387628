"""A generator's own list. Only the loop that goes through it holds the generator.

truth: leak cause=seen
"""

import torch
from _torch_steps import training


def batches():
    seen = []
    for _ in training():
        x = torch.rand(256, 1024)  # LEAK
        seen.append(x)  # LEAK
        yield x


for _ in batches():
    pass
