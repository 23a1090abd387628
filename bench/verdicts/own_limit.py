"""The program allows itself a part of the memory: it runs out of that one, with most of the GPU free.

gpu: 4 GiB
truth: out of memory
"""

import torch

torch.cuda.set_per_process_memory_fraction(0.25)
kept = [torch.empty(64 << 20, device="cuda") for _ in range(5)]
