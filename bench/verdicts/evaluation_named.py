"""An evaluation that nothing reached is named beside the verdict.

gpu: 1 GiB
truth: fits
says: without its evaluation
"""

import torch

model = torch.nn.Linear(1024, 1024).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
for step in range(1000):
    model(torch.randn(64, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step == 999:
        model.eval()
        with torch.no_grad():
            model(torch.randn(64, 1024, device="cuda"))
