"""A floating-point number decides how many rows are kept.

gpu: 1 GiB
truth: out of memory
"""

import torch

x = torch.full((1024,), 2000.0, device="cuda")
rows = int(x.mean().item())  # DECIDES
y = torch.empty(rows, 1 << 20, device="cuda")
print(y.shape)
