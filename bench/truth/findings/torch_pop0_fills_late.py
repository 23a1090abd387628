"""A replay buffer: a list whose oldest item goes once it has 250 of them.

truth: innocent
"""

import torch
from _torch_steps import training

replay = []
for _step, _model in training(330, work=4):
    replay.append(torch.ones(1 << 18))
    if len(replay) > 250:
        replay.pop(0)
