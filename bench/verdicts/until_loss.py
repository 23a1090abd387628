"""A loop that waits for its loss, which is far off at its begin, and keeps an output in each round.

gpu: 1 GiB
truth: out of memory
"""

import torch

model = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
loss, kept = 1e9, []
while loss > 1e-3 and len(kept) < 400:
    x = torch.randn(1024, 1024, device="cuda")
    error = (model(x) - x).pow(2).mean()
    optimizer.zero_grad()
    error.backward()
    optimizer.step()
    loss = error.item()  # DECIDES
    kept.append(model(x).detach())
