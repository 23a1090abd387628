"""Work put off until the end: partial objects with their arguments.

truth: leak cause=later
"""

from functools import partial

import torch
from _torch_steps import training


class Report:
    def __init__(self):
        self.later = []

    def record(self, batch):
        self.later.append(partial(torch.sum, batch))  # LEAK


report = Report()
for _step, _model in training():
    batch = torch.ones(1 << 18)  # LEAK
    report.record(batch)
