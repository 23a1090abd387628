"""A check that only raises passes on a GPU.

gpu: 1 GiB
truth: fits, 4 + 384 MiB
"""

import torch

x = torch.rand(1 << 20, device="cuda")
assert (x >= 0).all() and x.max() <= 1, "not normalised"
if x.min() < 0:
    raise ValueError("negative")
y = torch.empty(96 << 20, device="cuda")
print(y.shape)
