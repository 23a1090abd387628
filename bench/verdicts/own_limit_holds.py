"""Below the limit that the program sets itself.

gpu: 4 GiB
truth: fits, 3 * 256 MiB
"""

import torch

torch.cuda.set_per_process_memory_fraction(0.25)
kept = [torch.empty(64 << 20, device="cuda") for _ in range(3)]
