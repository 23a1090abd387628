"""A private attribute, whose name Python changes.

truth: leak cause=Recorder.__seen
"""

import torch
from _torch_steps import training


class Recorder:
    def __init__(self):
        self.__seen = []

    def note(self, x):
        self.__seen.append(x)  # LEAK


recorder = Recorder()
for _ in training():
    recorder.note(torch.rand(256, 1024))  # LEAK
