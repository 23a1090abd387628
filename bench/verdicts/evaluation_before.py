"""A long evaluation comes first, then a training that needs more.

gpu: 1 GiB
truth: out of memory
"""

import torch
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(64 * 1024, 64))
model = torch.nn.Linear(64, 64).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
model.eval()
with torch.no_grad():
    for (x,) in DataLoader(data, batch_size=64):
        model(x.to("cuda"))
model.train()
for (x,) in DataLoader(data, batch_size=64):
    model(x.to("cuda").repeat(1 << 16, 1)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
