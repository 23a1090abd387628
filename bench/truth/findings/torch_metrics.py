"""Numbers, not tensors, are kept of each step.

truth: innocent
"""

import torch
from _torch_steps import training

history, means = [], {}
for step, _model in training(400):
    batch = torch.rand(1 << 18)
    history.append(batch.mean().item())
    means[step] = float(batch[0])
