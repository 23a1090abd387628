"""All predictions so far in one tensor that is made anew at each step.

truth: leak cause=predictions
"""

import torch
from _torch_steps import training

predictions = torch.empty(0)
for _step, _model in training():
    new = torch.rand(1 << 16)
    predictions = torch.cat([predictions, new])  # LEAK
