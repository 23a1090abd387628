"""A count of elements becomes a size, and there are too many.

gpu: 1 GiB
truth: out of memory
"""

import torch

x = torch.randn(1 << 20, device="cuda")
n = int((x > -3).sum())  # DECIDES
y = torch.empty(n, 512, device="cuda")
print(y.shape)
