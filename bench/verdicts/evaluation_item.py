"""An evaluation without no_grad that adds up numbers keeps one graph at a time.

gpu: 1 GiB
truth: fits, 62 MiB
flags: --until evaluation
"""

import torch

model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.Tanh(), torch.nn.Linear(512, 512)).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())


def evaluate() -> float:
    total = 0.0
    for _ in range(60):
        loss = model(torch.randn(4096, 512, device="cuda")).square().mean()
        total = total + loss.item()
    return float(total)


for step in range(6):
    model(torch.randn(4096, 512, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 3 == 2:
        evaluate()
