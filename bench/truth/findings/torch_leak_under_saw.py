"""A buffer that is emptied every fifty steps, and a summary of each emptying that never is.

truth: leak cause=summaries
"""

import torch
from _torch_steps import training

gathered, summaries = [], []
for step, _model in training():
    gathered.append(torch.ones(1 << 17))
    if step % 25 == 24:
        summaries.append(torch.stack(gathered))  # LEAK
        gathered.clear()
