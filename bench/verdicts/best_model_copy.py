"""The best model so far is copied on the device, beside its moving average.

gpu: 1 GiB
truth: fits, 5 * 64 + 64 + 2 * 64 MiB
"""

import copy

import torch

model = torch.nn.Linear(4096, 4096, bias=False).cuda()
average = copy.deepcopy(model)
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
best = None
for _ in range(4):
    model(torch.randn(8, 4096, device="cuda")).square().mean().backward()
    optimizer.step()
    with torch.no_grad():
        for kept, now in zip(average.parameters(), model.parameters()):
            kept.lerp_(now, 0.01)
    best = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    optimizer.zero_grad(set_to_none=False)
