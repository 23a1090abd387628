"""A hook on a parameter's gradient at every step, each with a mask of its own.

truth: leak cause=register_hook|_backward_hooks
"""

import torch
from _torch_steps import training

weight = torch.nn.Parameter(torch.ones(1 << 18))
for _step, _model in training():
    mask = torch.ones(1 << 18)  # LEAK
    weight.register_hook(lambda grad, mask=mask: grad * mask)  # LEAK
