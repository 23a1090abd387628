"""A mask selects half of the elements, which fits; all of them would not.

gpu: 1 GiB
truth: fits
"""

import torch

x = torch.randn(32 << 20, device="cuda")
y = x[x > 0]  # DECIDES
z = torch.cat([y, y, y])
print(z.shape)
