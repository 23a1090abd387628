"""Weights that are loaded onto the host first are on the device once.

gpu: 1 GiB
truth: fits, 400 MiB
host: 400 + 400 MiB
flags: --sandbox
"""

import torch

model = torch.nn.Linear(10 << 10, 10 << 10, bias=False)
torch.save(model.state_dict(), "weights.pt")
model.to("cuda")
state = torch.load("weights.pt", map_location="cpu")
model.load_state_dict(state)
