"""An lru_cache with a bound that is reached after four fifths of the steps.

truth: innocent
"""

import functools

import torch
from _torch_steps import training


@functools.lru_cache(maxsize=280)
def features(step):
    return torch.full((1 << 17,), float(step))


for step, _model in training(350, work=4):
    features(step)
