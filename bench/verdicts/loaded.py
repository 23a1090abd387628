"""Weights that are loaded onto the device are there twice, the file's and the model's.

gpu: 1 GiB
truth: out of memory
flags: --sandbox
"""

import torch

model = torch.nn.Linear(10 << 10, 10 << 10, bias=False)
torch.save(model.state_dict(), "weights.pt")
model.to("cuda")
state = torch.load("weights.pt", map_location="cuda")
model.load_state_dict(state)
