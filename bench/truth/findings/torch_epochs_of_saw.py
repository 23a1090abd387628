"""Predictions gathered through an epoch and dropped at its end; the last epoch is not over.

truth: innocent
"""

import torch
from _torch_steps import training

predictions = []
for step, _model in training(330):
    predictions.append(torch.ones(1 << 17))
    if step % 100 == 99:
        torch.cat(predictions).mean()
        predictions = []
