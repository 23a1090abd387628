"""Gradients of four micro-batches are accumulated.

gpu: 1 GiB
truth: fits
"""

import torch

model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024)).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
for step in range(40):
    (model(torch.randn(4096, 1024, device="cuda")).square().mean() / 4).backward()
    if step % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
