"""A branch over numpy: what comes back from the device decides, in another library's array.

gpu: 1 GiB
truth: out of memory
"""

import numpy as np
import torch

scores = torch.rand(1000, device="cuda").cpu().numpy()  # DECIDES
if np.percentile(scores, 99) > 0.5:
    x = torch.zeros(512 << 20, device="cuda")
