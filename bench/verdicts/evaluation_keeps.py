"""An evaluation after the first epoch keeps its outputs on the device.

gpu: 1 GiB
truth: out of memory
flags: --until evaluation
"""

import torch
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(512 * 1024, 64))
model = torch.nn.Linear(64, 1024).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    model.train()
    for (x,) in DataLoader(data, batch_size=1024):
        model(x.to("cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        outputs = torch.cat([model(x.to("cuda")) for (x,) in DataLoader(data, batch_size=1024)])
