"""A list comprehension keeps those above a threshold.

gpu: 1 GiB
truth: out of memory
"""

import torch

x = torch.rand(1 << 12, device="cuda")
keep = [i for i, s in enumerate(x.tolist()) if s > 0.001]  # DECIDES
y = [torch.empty(1 << 18, device="cuda") for i in keep]
print(len(y))
