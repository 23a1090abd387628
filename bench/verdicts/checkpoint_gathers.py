"""Saving gathers a copy of all that is trained on the device.

gpu: 1 GiB
truth: out of memory
flags: --until checkpoint --sandbox
"""

import torch
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(64 * 1024, 4096))
model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(3)]).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
for _ in range(2):
    for (x,) in DataLoader(data, batch_size=64):
        model(x.to("cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
    state = {name: [t.clone() for t in (p, p.grad, p + 1)] for name, p in model.named_parameters()}
    torch.save(state, "last.pt")
