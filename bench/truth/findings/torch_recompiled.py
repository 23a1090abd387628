"""A function compiled anew for each step: torch.compile keeps every graph.

truth: leak cause=compil
"""

import torch
from _torch_steps import training

torch._dynamo.config.recompile_limit = 10_000
torch._dynamo.config.accumulated_recompile_limit = 10_000


@torch.compile(backend="eager", dynamic=False)  # LEAK
def scaled(x, k):  # LEAK
    for i in range(60):
        x = x * k + i  # LEAK
    return x


x = torch.ones(16)
for step, _model in training(120, work=3):
    scaled(x, float(step) + 0.5)  # LEAK
