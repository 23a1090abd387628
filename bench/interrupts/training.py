"""A training loop of PyTorch."""

import torch

model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
optimizer = torch.optim.AdamW(model.parameters())
x, y = torch.randn(32, 64), torch.randint(0, 10, (32,))
step = 0
while True:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    step += 1
    if step == 3:
        print("ready", flush=True)
