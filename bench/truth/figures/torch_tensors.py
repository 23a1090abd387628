"""One process with PyTorch and 20 tensors of 16 MiB."""

import torch
from kernel import mark

held = [torch.ones(4 << 20) for _ in range(20)]
mark()
