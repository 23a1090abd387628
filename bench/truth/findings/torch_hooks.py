"""A forward hook registered at every step, and never removed: each closes over what it saw.

truth: leak cause=register_forward_hook|_forward_hooks
"""

import torch
from _torch_steps import training


def watch(module, batch):
    def hook(_module, _inputs, output):
        return None if batch is None else output

    module.register_forward_hook(hook)  # LEAK


probe = torch.nn.Linear(8, 8)
for _step, _model in training():
    batch = torch.ones(1 << 18)  # LEAK
    watch(probe, batch)
