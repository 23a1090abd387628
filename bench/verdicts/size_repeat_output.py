"""Repeats that a kernel computed, of which the program says how many there are.

gpu: 1 GiB
truth: fits, 192 MiB
"""

import torch

x = torch.randn(1024, 1 << 14, device="cuda")
counts = (torch.rand(1024, device="cuda") * 0 + 2).long()
y = x.repeat_interleave(counts, 0, output_size=2048)
print(y.shape)
