"""Documents of a packed row are told by their end tokens; the longest decides the scores' size.

gpu: 1 GiB
truth: fits, 100 MiB
"""

import torch

ids = torch.ones(1, 20_480, dtype=torch.long)
ids[0, 5119::5120] = 0
ids = ids.to("cuda")
ends = (ids[0] == 0).nonzero().flatten()
longest = int(torch.diff(ends).max())
scores = torch.empty(longest, longest, device="cuda")
print(scores.shape)
