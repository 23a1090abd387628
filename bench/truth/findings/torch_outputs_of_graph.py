"""Outputs stored by step in an attribute, each with its graph.

truth: leak cause=saved
"""

import torch
from _torch_steps import training


class Probe(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(128, 128)
        self.saved = {}

    def forward(self, x, step):
        out = torch.tanh(self.inner(x))  # LEAK
        self.saved[step] = out.mean()  # LEAK
        return out


probe, x = Probe(), torch.rand(1024, 128)
for step, _model in training():
    probe(x, step)
