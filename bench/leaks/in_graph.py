"""Losses that still carry their autograd graph, kept for a plot."""

import torch
from _training import SIZE, training
from torch import nn

WIDTH = 64
# A forward pass saves the input of each of the four layers' activations: SIZE bytes in all.
rows = max(1, SIZE // (4 * WIDTH * 4))
probe = nn.Sequential(*[nn.Sigmoid() for _ in range(4)])
weight = torch.ones(WIDTH, requires_grad=True)
batch = torch.rand(rows, WIDTH)

history = []
for _step, _images in training():
    loss = probe(batch + weight).mean()  # LEAK (site)
    history.append(loss)  # LEAK (holder)
