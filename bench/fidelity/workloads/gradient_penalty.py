"""Gradients of gradients: a critic with a gradient penalty."""

import torch
from scale import pick
from torch import nn

batch, width = pick((64, 128), (4, 16))
model = nn.Sequential(
    nn.Conv2d(3, width, 4, 2, 1), nn.SiLU(), nn.Conv2d(width, 2 * width, 4, 2, 1), nn.SiLU(),
    nn.Flatten(), nn.Linear(2 * width * 64, 1),
).cuda()  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
for _ in range(3):
    images = torch.randn(batch, 3, 32, 32, device="cuda", requires_grad=True)
    scores = model(images)
    (slopes,) = torch.autograd.grad(scores.sum(), images, create_graph=True)
    loss = scores.mean() + 10 * ((slopes.flatten(1).norm(2, 1) - 1) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
