"""A schedule on the host decides when the batch grows.

gpu: 1 GiB
truth: out of memory
"""

import torch

model = torch.nn.Linear(1024, 1024, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
for _ in range(8):
    rows = 1 << 10 if schedule.get_last_lr()[0] > 0.1 else 1 << 18
    model(torch.randn(rows, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    schedule.step()
