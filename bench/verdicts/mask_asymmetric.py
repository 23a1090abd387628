"""What a mask selects is cheap, and what its opposite selects is not.

gpu: 1 GiB
truth: out of memory
"""

import torch

x = torch.randn(1 << 14, 1 << 10, device="cuda")
mask = x[:, 0] > 2
above = x[mask]
below = x[~mask]  # DECIDES
kept = [below * n for n in range(12)]
print(above.shape, len(kept))
