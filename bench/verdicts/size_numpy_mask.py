"""A mask that a kernel computed is read to the host, and its true elements are counted there.

gpu: 1 GiB
truth: out of memory
"""

import torch

x = torch.randn(1 << 12, device="cuda")
keep = (x > -4).cpu().numpy()  # DECIDES
y = torch.empty(int(keep.sum()), 1 << 18, device="cuda")
print(y.shape)
