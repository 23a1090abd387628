"""Convolutions in three dimensions: R3D-18 on clips."""

import torch
import torchvision
from scale import pick

batch, frames, size = pick((8, 16, 112), (1, 4, 32))
model = torchvision.models.video.r3d_18().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(3):
    loss = model(torch.randn(batch, 3, frames, size, size).cuda()).logsumexp(1).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
