"""Tokens of each expert are counted by an addition at its place, and repeated by that.

gpu: 1 GiB
truth: fits
"""

import torch

EXPERTS, K, DIM = 8, 2, 1024
tokens = torch.randn(8192, DIM, device="cuda")
chosen = torch.topk(tokens[:, :EXPERTS], K).indices.flatten()
counts = torch.zeros(EXPERTS, dtype=torch.long, device="cuda").scatter_add_(0, chosen, torch.ones_like(chosen))
expert = torch.arange(EXPERTS, device="cuda").repeat_interleave(counts)
bias = torch.randn(EXPERTS, DIM, device="cuda")
out = tokens[chosen.argsort() // K] + bias[expert]
print(out.shape)
