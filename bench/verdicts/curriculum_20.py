"""The sequence grows at step 20.

gpu: 1 GiB
truth: out of memory
"""

import torch

model = torch.nn.Linear(512, 512, device="cuda")
optimizer = torch.optim.AdamW(model.parameters())
for step in range(40):
    rows = 1 << 12
    if step >= 20:
        rows = 1 << 19
    model(torch.randn(rows, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
