"""A number that the device draws is a size.

gpu: 1 GiB
truth: out of memory
"""

import torch

n = torch.randint(900, 1000, (1,), device="cuda").item()  # DECIDES
y = torch.empty(n, 1 << 20, device="cuda")
print(y.shape)
