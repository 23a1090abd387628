"""An LRU cache: grows with every step until it has its 100 entries, then replaces the oldest."""

import functools

import torch
from _training import SIZE, training


@functools.lru_cache(maxsize=100)
def features(step):
    return torch.full((SIZE // 4,), float(step))


for step, _images in training():
    features(step)
