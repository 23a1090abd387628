"""A maximum above five takes the large branch; on a GPU it is 400.

gpu: 1 GiB
truth: out of memory
"""

import torch

x = torch.rand(1 << 16, device="cuda") + 400
if x.max().item() > 5:  # DECIDES
    y = torch.empty(512 << 20, device="cuda")
else:
    y = torch.empty(1 << 20, device="cuda")
print(y.shape)
