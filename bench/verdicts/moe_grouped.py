"""Counts of the experts become offsets of a grouped product, and are read for its checks.

gpu: 1 GiB
truth: fits
"""

import torch

EXPERTS, K, DIM = 16, 2, 1024
tokens = torch.randn(8192, DIM, device="cuda", dtype=torch.bfloat16)
weight = torch.randn(EXPERTS, DIM, DIM, device="cuda", dtype=torch.bfloat16)
chosen = torch.topk(tokens @ weight[0, :, :EXPERTS], K).indices.flatten()
counts = torch.histc(chosen.int(), bins=EXPERTS, min=0, max=EXPERTS - 1)
offsets = counts.cumsum(0).long().tolist()
grouped = tokens[chosen.argsort() // K]
out = [grouped[first:last] @ w for first, last, w in zip([0, *offsets], offsets, weight, strict=False)]
assert sum(len(part) for part in out) == len(grouped)
