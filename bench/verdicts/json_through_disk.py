"""A number that went through a file comes back as a size: what nobody can follow is said.

gpu: 1 GiB
truth: out of memory
"""

import json

import torch

n = torch.randint(0, 1 << 30, (1,), device="cuda").clamp(min=1 << 29).sum().item()  # DECIDES
with open("n.json", "w") as file:
    json.dump({"n": n}, file)
with open("n.json") as file:
    n = json.load(file)["n"]
x = torch.zeros(n, device="cuda")
