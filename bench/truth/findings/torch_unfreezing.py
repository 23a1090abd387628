"""Layers that are trained one after the other: each gets its optimizer's state when its turn comes.

truth: innocent
"""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(8)])
for p in model.parameters():
    p.requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters())
x = torch.rand(32, 512)
for step in range(240):
    if step % 20 == 0 and step < 160:
        for p in model[step // 20].parameters():
            p.requires_grad_(True)
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
