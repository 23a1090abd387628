"""Two streams and pinned memory: batches are copied while the one before is computed."""

import torch
from scale import pick
from torch import nn

batch, width = pick((2048, 2048), (16, 32))
model = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
copying = torch.cuda.Stream()
host = [torch.randn(batch, width).pin_memory() for _ in range(2)]
following = None
for i in range(6):
    with torch.cuda.stream(copying):
        current, following = following, host[i % 2].cuda(non_blocking=True)
    torch.cuda.current_stream().wait_stream(copying)
    if current is None:
        continue
    current.record_stream(torch.cuda.current_stream())
    loss = model(current).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
