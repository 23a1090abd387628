"""A tensor equals itself, whatever it holds.

gpu: 1 GiB
truth: fits, 20 MiB
"""

import torch

x = torch.randn(1 << 20, device="cuda")
if not torch.equal(x, x) or not torch.allclose(x, x):
    y = torch.empty(512 << 20, device="cuda")
print(x.shape)
