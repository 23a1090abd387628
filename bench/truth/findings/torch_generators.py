"""Generators that are begun and never finished: each keeps its frame.

truth: leak cause=streams
"""

import torch
from _torch_steps import training

streams = []


def stream():
    batch = torch.ones(1 << 18)  # LEAK
    for row in range(batch.shape[0]):
        yield batch[row]


for _step, _model in training():
    begun = stream()
    next(begun)
    streams.append(begun)  # LEAK
