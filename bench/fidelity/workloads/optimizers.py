"""Optimizers: for-loop, foreach and fused versions, amsgrad, LAMB-like norms, LBFGS."""

import torch
from scale import pick
from torch import nn

width, layers = pick((2048, 6), (32, 2))
for make in (
    lambda p: torch.optim.AdamW(p, foreach=False),
    lambda p: torch.optim.AdamW(p, foreach=True, amsgrad=True),
    lambda p: torch.optim.AdamW(p, fused=True),
    lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, foreach=True),
    lambda p: torch.optim.Adagrad(p),
    lambda p: torch.optim.Adadelta(p),
    lambda p: torch.optim.RAdam(p),
    lambda p: torch.optim.Rprop(p),
):
    model = nn.Sequential(*[nn.Linear(width, width) for _ in range(layers)]).cuda()
    optimizer = make(model.parameters())
    for _ in range(2):
        model(torch.randn(64, width, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    del model, optimizer
