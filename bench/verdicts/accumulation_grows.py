"""Losses of several micro batches are added up, with their graphs; from the third step on of more of them.

gpu: 1 GiB
truth: out of memory
flags: --steps 6
"""

import torch

model = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(6):
    loss = torch.zeros((), device="cuda")
    for _ in range(2 if step < 3 else 12):
        loss = loss + model(torch.randn(16384, 1024, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
