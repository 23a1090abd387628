"""A log of records, each a dict with tensors in it.

truth: leak cause=records|log
"""

import torch
from _torch_steps import training

log = {"records": [], "name": "run"}


def write(step, values):
    log["records"].append({"step": step, "values": {"raw": values}})  # LEAK


for step, _model in training():
    values = torch.rand(1 << 18)  # LEAK
    write(step, values)
