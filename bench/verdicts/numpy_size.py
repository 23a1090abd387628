"""A size over numpy: how many of the scores are above a half.

gpu: 1 GiB
truth: out of memory
"""

import numpy as np
import torch

scores = torch.rand(4096, device="cuda").cpu().numpy()  # DECIDES
kept = np.flatnonzero(scores > 0.2)
x = torch.zeros(len(kept), 1 << 17, device="cuda")
