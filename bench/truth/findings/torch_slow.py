"""A leak of 96 KiB a step beside a training that allocates far more.

truth: leak cause=kept
"""

import torch
from _torch_steps import training

kept = []
for _step, _model in training(900, work=3):
    small = torch.ones(24 << 10)  # LEAK
    kept.append(small)  # LEAK
