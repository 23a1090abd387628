"""bitsandbytes: the state of Adam in bytes, with a number of fp32 to each 256 of them.

gpu: 1 GiB
truth: fits, 256 + 256 + 2 * 65 + 8.125 MiB
host: 256 + 256 + 2 * 65 + 5 * 64 MiB
with: libraries

64 Mi weights of fp32 and their gradients; two states of a byte each and their scales; cuBLAS's
workspace. The CUDA kernel updates states where they lie. bitsandbytes' kernel of the host unpacks both states of a
weight into fp32, multiplies its gradient, and takes a root and a quotient: five times 64 MiB beside it.
"""

import bitsandbytes
import torch

weights = [torch.nn.Parameter(torch.zeros(4096, 4096, device="cuda")) for _ in range(4)]
optimizer = bitsandbytes.optim.Adam8bit(weights)
x = torch.ones(1, 4096, device="cuda")
for _ in range(4):
    y = x
    for weight in weights:
        y = y @ weight
    y.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
