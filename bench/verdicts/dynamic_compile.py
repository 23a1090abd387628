"""A compiled function with sizes that change: the largest comes last.

gpu: 1 GiB
truth: out of memory
"""

import torch


@torch.compile(dynamic=True)
def f(x):
    return (x @ x.T).relu().sum()


for n in (256, 512, 1024, 20000):
    f(torch.randn(n, 64, device="cuda")).item()
