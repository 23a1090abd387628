"""Weights drawn from a normal distribution that is cut at three of its deviations: PyTorch 2.15 draws those beyond again.

gpu: 1 GiB
truth: fits, 4 * 64 + 16 MiB

Of 16 Mi numbers 45,000 are drawn again, then 122: while the second are put in place there are the weight, what it is
so far, what was drawn, what comes of both, and a mask of bytes.
"""

import torch

weight = torch.empty(4096, 4096, device="cuda")
torch.nn.init.trunc_normal_(weight, std=0.02, a=-0.06, b=0.06)
