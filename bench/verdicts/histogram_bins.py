"""How many bins there are is the largest value plus one, that a kernel computed.

gpu: 1 GiB
truth: fits
"""

import torch

x = (torch.randn(4096, device="cuda") * 10).long().abs()
counts = torch.bincount(x)  # DECIDES
table = torch.zeros(len(counts), 1024, device="cuda")
