"""Scores are copied to the host, and their shape is a size there: it is what it is, whatever the scores are.

gpu: 1 GiB
truth: fits, 20 MiB
"""

import torch

scores = torch.randn(1 << 20, device="cuda").softmax(0)
host = scores.cpu()
if host.shape[0] > 1 << 21:
    torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
rows = torch.empty(host.shape[0], 4, device="cuda")
