"""A tensor of the device ends a slice, which is copied: all of its 300 rows.

gpu: 1 GiB
truth: out of memory
"""

import torch

n = (torch.rand(300, device="cuda") > -1).sum()
big = torch.empty(300, 1 << 18, device="cuda")
y = [big[:n].clone() for _ in range(3)]  # DECIDES
print(y[0].shape)
