"""A loop goes on until a kernel says that it is done; on a GPU that is after four turns.

gpu: 1 GiB
truth: fits, 512 MiB
"""

import torch

kept, x = [], torch.ones((), device="cuda")
while x < 10:  # DECIDES
    kept.append(torch.empty(32 << 20, device="cuda"))
    x = x * 2
print(len(kept))
