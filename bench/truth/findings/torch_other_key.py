"""A dict with two lists: numbers in one, tensors in the other.

truth: leak cause=history.*states
"""

import torch
from _torch_steps import training

history = {"loss": [], "states": []}
for step, _ in training():
    history["loss"].append(1.0 / (step + 1))
    history["states"].append(torch.rand(256, 1024))  # LEAK
    history["last"] = step
