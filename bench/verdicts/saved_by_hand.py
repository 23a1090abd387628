"""Functions of the program's own move what is saved for the backward pass to the host: what they copy decides nothing.

gpu: 1 GiB
truth: fits, 4 * 64 MiB
"""

from __future__ import annotations

import torch


def pack(saved: torch.Tensor) -> tuple[str, torch.Tensor]:
    return "host", saved.cpu()


def unpack(packed: tuple[str, torch.Tensor]) -> torch.Tensor:
    return packed[1].cuda() if packed[0] == "host" else packed[1]


def forward(x: torch.Tensor) -> torch.Tensor:
    for _ in range(16):
        x = torch.nn.Tanh()(x)
    return x


x = torch.randn(16 << 20, device="cuda", requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
    loss = forward(x).sum()
if loss is not None:
    loss.backward()
