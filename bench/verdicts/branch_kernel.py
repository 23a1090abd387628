"""What a kernel computed decides which path is taken.

gpu: 1 GiB
truth: out of memory
"""

import torch

x = torch.randn(1 << 20, device="cuda")
if (x > 3).any():  # DECIDES
    y = torch.empty(512 << 20, device="cuda")
else:
    y = torch.empty(1 << 20, device="cuda")
print(y.shape)
