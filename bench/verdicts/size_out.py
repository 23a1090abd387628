"""A sum is written into known zeros by out=, in inference mode.

gpu: 1 GiB
truth: out of memory
"""

import torch

with torch.inference_mode():
    x = torch.rand(1 << 20, device="cuda")
    n = torch.zeros((), dtype=torch.int64, device="cuda")
    print(int(n))
    torch.sum(x > 0, dim=0, out=n)
    rows = int(n)  # DECIDES
    kept = torch.zeros(rows, 512, device="cuda")
