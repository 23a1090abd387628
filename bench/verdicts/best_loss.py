"""A best loss decides whether the weights are copied.

gpu: 1 GiB
truth: out of memory
"""

import torch

model = torch.nn.Linear(9 << 10, 9 << 10, bias=False, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), foreach=False)
best = float("inf")
for _ in range(4):
    loss = model(torch.randn(1, 9 << 10, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    if loss.item() < best:
        best, copy = loss.item(), model.weight.detach().clone()
