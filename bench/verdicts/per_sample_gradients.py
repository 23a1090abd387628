"""Gradients of each sample, by torch.func: as many times the model as there are samples.

gpu: 1 GiB
truth: out of memory
"""

import torch
from torch.func import functional_call, grad, vmap

model = torch.nn.Linear(2048, 2048, bias=False).cuda()
weights = dict(model.named_parameters())


def loss(weights: dict, x: torch.Tensor) -> torch.Tensor:
    return functional_call(model, weights, (x,)).square().mean()


gradients = vmap(grad(loss), in_dims=(None, 0))(weights, torch.randn(64, 2048, device="cuda"))
