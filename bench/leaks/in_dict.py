"""A dict of predictions by step, never emptied."""

import torch
from _training import SIZE, training


class Monitor:
    def __init__(self):
        self.outputs = {}

    def record(self, step):
        output = torch.ones(SIZE // 4)  # LEAK (site)
        self.outputs[step] = output  # LEAK (holder)


monitor = Monitor()
for step, _images in training():
    monitor.record(step)
