"""Experts with a capacity: what is beyond it is dropped, so that no size depends on data.

gpu: 1 GiB
truth: fits
"""

import torch

EXPERTS, DIM, CAPACITY = 16, 512, 1024
tokens = torch.randn(8192, DIM, device="cuda")
gate = torch.randn(DIM, EXPERTS, device="cuda")
weight = torch.randn(EXPERTS, DIM, DIM, device="cuda")
places = torch.topk((tokens @ gate).softmax(-1).t(), CAPACITY).indices
out = torch.bmm(tokens[places], weight)
result = torch.zeros_like(tokens).index_add_(0, places.flatten(), out.flatten(0, 1))
print(result.shape)
