"""Gradient accumulation over micro-batches of different lengths."""

import torch
from scale import pick
from torch import nn

width, layers, batch = pick((768, 8, 16), (32, 1, 2))
encoder = nn.TransformerEncoderLayer(width, max(1, width // 64), 4 * width, batch_first=True, norm_first=True)
model = nn.Sequential(nn.TransformerEncoder(encoder, layers, enable_nested_tensor=False), nn.Linear(width, 100)).cuda()
optimizer = torch.optim.NAdam(model.parameters())
for _ in range(2):
    for length in (64, 192, 96, 256):
        x = torch.randn(batch, length, width).cuda()
        loss = model(x).logsumexp(-1).mean() / 4
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
