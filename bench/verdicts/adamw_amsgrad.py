"""AdamW that keeps the largest second moment, too.

gpu: 1 GiB
truth: fits, 6 * 64 MiB
"""

import torch

model = torch.nn.ModuleList(torch.nn.Linear(1024, 1024, bias=False) for _ in range(16)).to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), amsgrad=True, foreach=True)
for _ in range(4):
    for layer in model:
        layer(torch.randn(1, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
