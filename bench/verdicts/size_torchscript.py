"""TorchScript reads a count and makes a tensor of that size.

gpu: 1 GiB
truth: out of memory
"""

import torch


@torch.jit.script
def kept(x):
    n = int((x > 0).sum())
    return torch.zeros([n, 512], device=x.device)


x = torch.rand(1 << 20, device="cuda")
y = kept(x)  # DECIDES
print(y.shape)
