"""The same where gradients are given back: 256 MiB of weights and 300 MiB that are made before the gradients.

gpu: 1 GiB
truth: fits, 256 + 300 MiB
"""

import torch

model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048, bias=False) for _ in range(16)]).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(4):
    with torch.no_grad():
        targets = torch.randn(75 << 20, device="cuda").mean()
    (model(torch.randn(8, 2048, device="cuda")).square().mean() - targets).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
