"""LBFGS keeps a history of flat directions and gradients: ten steps of each, of the whole model.

gpu: 1 GiB
truth: out of memory
"""

import torch

model = torch.nn.Linear(4096, 4096, bias=False).cuda()
optimizer = torch.optim.LBFGS(model.parameters(), history_size=10, max_iter=20)
x = torch.randn(8, 4096, device="cuda")


def closure() -> torch.Tensor:
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    return loss


for _ in range(3):
    optimizer.step(closure)  # DECIDES
