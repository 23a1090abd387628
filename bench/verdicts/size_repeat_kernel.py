"""Repeats that a kernel computed: how many is not known.

gpu: 1 GiB
truth: out of memory
"""

import torch

x = torch.randn(1024, 1 << 14, device="cuda")
counts = (torch.rand(1024, device="cuda") * 0 + 40).long()
y = x.repeat_interleave(counts, 0)  # DECIDES
print(y.shape)
