"""Fused AdamW has no temporaries: what does not fit over a list of tensors fits here.

gpu: 1 GiB
truth: fits, 4 * 168 + 8 + 8.125 MiB
"""

import torch

model = torch.nn.ModuleList(torch.nn.Linear(1024, 1024, bias=False) for _ in range(42)).to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
for _ in range(4):
    for layer in model:
        layer(torch.randn(1, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
