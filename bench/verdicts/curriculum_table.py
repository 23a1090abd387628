"""The sequence grows by a table of steps.

gpu: 1 GiB
truth: out of memory
"""

import torch

STAGES = {0: 1 << 12, 10: 1 << 13, 30: 1 << 19}
model = torch.nn.Linear(512, 512, device="cuda")
optimizer = torch.optim.AdamW(model.parameters())
rows = 0
for step in range(40):
    rows = STAGES.get(step, rows)
    model(torch.randn(rows, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
