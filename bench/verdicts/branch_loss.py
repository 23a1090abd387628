"""A loss that falls below a threshold frees what the first phase needed, and the second needs more.

gpu: 1 GiB
truth: out of memory
"""

import torch

weight = torch.ones(1024, device="cuda", requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(6):
    loss = (weight**2).mean()
    loss.backward()
    optimizer.step()
    if loss.item() > 0.5:  # DECIDES
        extra = torch.empty(512 << 20, device="cuda")
    optimizer.zero_grad()
