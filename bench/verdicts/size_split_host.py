"""Counts that the host wrote split a tensor; each part is copied.

gpu: 1 GiB
truth: fits, 512 MiB
"""

import torch

x = torch.randn(4096, 1 << 14, device="cuda")
counts = torch.tensor([1024, 3000, 72]).to("cuda")
parts = [part.clone() for part in torch.split(x, counts.tolist())]
print(len(parts))
