"""Progressive resizing: images of four sizes, one after the other.

truth: innocent
"""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
optimizer = torch.optim.Adam(model.parameters())
for step in range(240):
    side = 32 + 16 * (step // 60)
    loss = model(torch.rand(16, 3, side, side)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
