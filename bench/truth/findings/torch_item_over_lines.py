"""Models of a search: each item's bytes are allocated at two lines, as weights and as gradients.

truth: leak cause=trials
"""

import torch
from _torch_steps import training

trials = []
for step, _ in training():
    if step % 3 == 0:
        net = torch.nn.Linear(512, 512, bias=False)  # LEAK
        net(torch.rand(2, 512)).pow(2).mean().backward()  # LEAK
        trials.append(net)  # LEAK
