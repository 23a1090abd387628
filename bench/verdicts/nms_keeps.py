"""How many boxes are kept follows from scores that a kernel computed, and sizes what comes after.

gpu: 1 GiB
truth: fits
"""

import torch

scores = torch.rand(1 << 16, device="cuda").softmax(0)
keep = scores > 0.5  # at most one of them
count = keep.sum()
features = torch.zeros(int(count), 4096, device="cuda")  # DECIDES
