"""The sequence grows a little each step.

gpu: 1 GiB
truth: out of memory
"""

import torch

model = torch.nn.Linear(512, 512, device="cuda")
optimizer = torch.optim.AdamW(model.parameters())
for step in range(100):
    model(torch.randn(4096 * (1 + step), 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
