"""A gradient penalty whose backward pass keeps graphs of gradients: an input and its own gradient are a cycle.

truth: leak cause=create_graph
"""

import time

import torch
from torch import nn

critic = nn.Sequential(nn.Linear(128, 512), nn.Softplus(), nn.Linear(512, 1))
optimizer = torch.optim.Adam(critic.parameters())
for step in range(150):
    x = torch.randn(256, 128, requires_grad=True)  # LEAK
    (gradient,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)  # LEAK
    loss = (gradient.norm(dim=1) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward(create_graph=True)  # LEAK
    optimizer.step()
    time.sleep(0.016)
