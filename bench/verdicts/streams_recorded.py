"""A tensor that another stream uses is given back once that has been done.

gpu: 1 GiB
truth: fits
"""

import torch

side = torch.cuda.Stream()
for _ in range(8):
    x = torch.empty(64 << 20, device="cuda")
    with torch.cuda.stream(side):
        y = x.sum()
    x.record_stream(side)
    del x
    torch.cuda.synchronize()
