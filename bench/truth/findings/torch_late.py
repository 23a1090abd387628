"""A leak that begins after two fifths of the steps.

truth: leak cause=examples
"""

import torch
from _torch_steps import training

examples = []
for step, _model in training(400):
    if step > 160:
        examples.append(torch.ones(1 << 18))  # LEAK
