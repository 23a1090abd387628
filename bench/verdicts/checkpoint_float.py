"""Weights of bfloat16 are saved in float32, made on the device, at step 300.

gpu: 1 GiB
truth: out of memory
flags: --until checkpoint --sandbox
"""

import torch

model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096, bias=False) for _ in range(6)]).to("cuda", torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
for step in range(1000):
    model(torch.randn(8, 4096, device="cuda", dtype=torch.bfloat16)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    if step == 300:
        torch.save({name: weight.float() for name, weight in model.state_dict().items()}, "last.pt")
