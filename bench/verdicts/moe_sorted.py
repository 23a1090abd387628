"""Tokens are sorted by expert, and counts of the experts split them.

gpu: 1 GiB
truth: fits
"""

import torch

EXPERTS, K, DIM = 32, 2, 1024
tokens = torch.randn(8192, DIM, device="cuda")
gate = torch.randn(DIM, EXPERTS, device="cuda")
weight = torch.randn(EXPERTS, DIM, DIM, device="cuda", requires_grad=True)
chosen = torch.topk(tokens @ gate, K).indices.flatten()
order = chosen.argsort()
counts = torch.bincount(chosen, minlength=EXPERTS).cpu().tolist()
parts = torch.split(tokens[order // K], counts)
out = torch.cat([part @ weight[number] for number, part in enumerate(parts)])
out.sum().backward()
