"""SGD without momentum has no state.

gpu: 1 GiB
truth: fits, 2 * 324 + 8.2 MiB
"""

import torch

model = torch.nn.Linear(9 << 10, 9 << 10, bias=False, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), foreach=False)
for _ in range(4):
    model(torch.randn(1, 9 << 10, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
