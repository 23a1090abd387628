"""Callbacks that are never unregistered, each closing over a tensor."""

import torch
from _training import SIZE, training

callbacks = []


def on_end(batch):
    def report():
        return batch.sum()

    callbacks.append(report)  # LEAK (holder)


for _step, _images in training():
    batch = torch.ones(SIZE // 4)  # LEAK (site)
    on_end(batch)
