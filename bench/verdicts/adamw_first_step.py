"""The state is made in the first step: what fits before it does not after.

gpu: 1 GiB
truth: out of memory
"""

import torch

model = torch.nn.Linear(9 << 10, 9 << 10, bias=False, device="cuda")
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
model(torch.randn(1, 9 << 10, device="cuda")).sum().backward()
optimizer.step()
