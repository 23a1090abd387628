"""Losses are kept with their graphs.

gpu: 1 GiB
truth: out of memory
"""

import torch

model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.Tanh(), torch.nn.Linear(512, 512)).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
losses = []
for _ in range(100):
    loss = model(torch.randn(4096, 512, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(model(torch.randn(4096, 512, device="cuda")).mean())
