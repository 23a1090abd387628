"""A dataset read lazily: the first epoch (120 steps) keeps each sample, later ones read it again."""

import torch
from _training import SIZE, training

dataset = {}
for step, _images in training():
    index = step % 120
    if index not in dataset:
        dataset[index] = torch.full((SIZE // 4,), float(index))
    dataset[index].sum()
