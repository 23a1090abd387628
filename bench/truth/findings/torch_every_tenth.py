"""The validation's outputs, kept every tenth step.

truth: leak cause=outputs
"""

import torch
from _torch_steps import training

outputs = []


def validate():
    return torch.ones(5 << 17)  # LEAK


for step, _model in training():
    if step % 10 == 0:
        outputs.append(validate())  # LEAK
