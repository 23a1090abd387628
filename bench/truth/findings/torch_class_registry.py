"""Every batch registers itself in its class.

truth: leak cause=Batch
"""

import torch
from _torch_steps import training


class Batch:
    seen = {}

    def __init__(self, number):
        self.values = torch.ones(1 << 17)  # LEAK
        Batch.seen[number] = self  # LEAK


for step, _model in training():
    Batch(step)
