"""What another stream has freed is not taken by this one.

gpu: 1 GiB
truth: out of memory
"""

import torch

side = torch.cuda.Stream()
with torch.cuda.stream(side):
    x = torch.empty(100 << 20, device="cuda")
    del x
y = torch.empty(64 << 20, device="cuda")
with torch.cuda.stream(side):
    z = torch.empty(99 << 20, device="cuda")
w = torch.empty(48 << 20, device="cuda")
