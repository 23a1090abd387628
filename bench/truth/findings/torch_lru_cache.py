"""An lru_cache without a bound, keyed by the step.

truth: leak cause=lru_cache|features
"""

import functools

import torch
from _torch_steps import training


@functools.lru_cache(maxsize=None)  # LEAK
def features(step):  # LEAK
    return torch.full((1 << 18,), float(step))  # LEAK


for step, _model in training():
    features(step)
