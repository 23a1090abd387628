"""A running total of losses that still carry their graphs.

truth: leak cause=total
"""

import torch
from _torch_steps import training

weight = torch.ones(256, requires_grad=True)
batch = torch.rand(1024, 256)
total = 0.0
for _step, _model in training():
    loss = torch.sigmoid(batch + weight).mean()  # LEAK
    total = total + loss  # LEAK
print(float(total))
