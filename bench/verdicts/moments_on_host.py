"""The optimizer's state is kept on the host and the parameters are stepped there: the GPU has parameters and gradients.

gpu: 1 GiB
truth: fits, 256 + 256 MiB
"""

import torch

model = torch.nn.Linear(8192, 8192, bias=False).cuda()
master = [p.detach().cpu().requires_grad_() for p in model.parameters()]
optimizer = torch.optim.AdamW(master)
for _ in range(3):
    model(torch.randn(1, 8192, device="cuda")).square().mean().backward()
    for own, there in zip(master, model.parameters()):
        own.grad, there.grad = there.grad.cpu(), None
    optimizer.step()
    with torch.no_grad():
        for own, there in zip(master, model.parameters()):
            there.copy_(own)
