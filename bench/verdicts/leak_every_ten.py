"""64 MiB leak every ten steps.

gpu: 1 GiB
truth: out of memory
"""

import torch

model = torch.nn.Linear(512, 512, device="cuda")
optimizer = torch.optim.AdamW(model.parameters())
kept = []
for step in range(200):
    model(torch.randn(4096, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 10 == 9:
        kept.append(torch.empty(16 << 20, device="cuda"))
