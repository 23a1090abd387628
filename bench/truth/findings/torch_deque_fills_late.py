"""A bounded deque that is full after five sixths of the steps.

truth: innocent
"""

from collections import deque

import torch
from _torch_steps import training

recent = deque(maxlen=420)
for _step, _model in training(500, work=4):
    recent.append(torch.ones(1 << 16))
