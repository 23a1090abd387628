"""A count of elements becomes a size; on a GPU half of them are counted.

gpu: 1 GiB
truth: fits
"""

import torch

x = torch.randn(1 << 20, device="cuda")
n = int((x > 0).sum())  # DECIDES
y = torch.empty(n, 256, device="cuda", dtype=torch.float32)
print(y.shape)
