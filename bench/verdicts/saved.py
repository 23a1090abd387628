"""Saving from the device copies one tensor after the other to the host.

gpu: 1 GiB
truth: fits, 600 MiB
flags: --sandbox
"""

import torch

state = {str(n): torch.empty(25 << 20, device="cuda") for n in range(6)}
torch.save(state, "state.pt")
