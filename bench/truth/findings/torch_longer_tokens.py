"""Attention over sequences that grow with the steps, at the level of the module. Nothing is kept.

truth: innocent
"""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(250):
    tokens = torch.randn(4, 16 + step, 64)
    out = model(tokens)
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
