"""A list that is cut to its newest entries, and has not reached that many.

truth: innocent
"""

import torch
from _torch_steps import training

KEEP = 4000
recent = []
for _ in training():
    recent.append(torch.rand(256, 256))
    del recent[:-KEEP]
