"""A training that ends once its loss is below a threshold, and then evaluates with all outputs kept.

gpu: 1 GiB
truth: out of memory
"""

import torch

model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _step in range(100000):
    loss = model(torch.randn(64, 256, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if loss.item() < 0.01:  # DECIDES
        break
outputs = []
with torch.no_grad():
    for _ in range(64):
        outputs.append(model(torch.randn(1 << 17, 256, device="cuda")))
