"""Gradients of each sample, eight samples at a time, each cut to its norm and added up.

gpu: 2 GiB
truth: fits
host: 1073.5 MiB
"""

import torch
from torch.func import functional_call, grad, vmap

model = torch.nn.Linear(2048, 2048, bias=False).to("cuda")
weights = dict(model.named_parameters())


def loss(weights: dict, x: torch.Tensor) -> torch.Tensor:
    return functional_call(model, weights, (x,)).square().mean()


total = torch.zeros(2048, 2048, device="cuda")
for chunk in torch.randn(64, 2048, device="cuda").split(8):
    gradients = vmap(grad(loss), in_dims=(None, 0))(weights, chunk)["weight"]
    norms = gradients.flatten(1).norm(dim=1).clamp(min=1)
    total += torch.einsum("n,nij->ij", 1 / norms, gradients)
