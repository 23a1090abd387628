"""An evaluation under no_grad, of a model that stays in training mode: whether it was reached is not known.

gpu: 1 GiB
truth: fits
says: perhaps without its evaluation
says not: steps, without its evaluation
"""

import torch

model = torch.nn.Linear(1024, 1024).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
for step in range(50):
    model(torch.randn(64, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 10 == 9:
        with torch.no_grad():
            model(torch.randn(64, 1024, device="cuda"))
