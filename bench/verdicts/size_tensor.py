"""A tensor of the device is given as a size: all 900 of its elements count.

gpu: 1 GiB
truth: out of memory
"""

import torch

n = (torch.ones(900, device="cuda").cumsum(0) > 0).sum()
y = torch.empty((n, 1 << 18), device="cuda")  # DECIDES
print(y.shape)
