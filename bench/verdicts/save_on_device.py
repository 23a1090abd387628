"""The same where it stays on the device.

gpu: 1 GiB
truth: out of memory
"""

import torch


def forward(x: torch.Tensor) -> torch.Tensor:
    for _ in range(16):
        x = x.tanh()
    return x


x = torch.randn(16 << 20, device="cuda", requires_grad=True)
with torch.enable_grad():
    loss = forward(x).sum()
loss.backward()
