"""Sequences of lengths that the host wrote are packed, and the longest decides the scores' size.

gpu: 1 GiB
truth: fits, 256 MiB
"""

import torch

mask = torch.arange(4096)[None] < torch.tensor([4096, 1000, 2000, 3000])[:, None]
mask = mask.to("cuda")
lengths = mask.sum(1, dtype=torch.int32)
offsets = torch.nn.functional.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0))
longest = (offsets[1:] - offsets[:-1]).max().item()
scores = torch.empty(4, longest, longest, device="cuda")
print(scores.shape)
