"""Ranks tell each other their lengths; nobody knows those of the others.

gpu: 1 GiB
truth: fits
flags: --world-size 2 --play 0
"""

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
torch.cuda.set_device(0)
mine = torch.tensor([400], device="cuda")
every = [torch.zeros_like(mine) for _ in range(2)]
dist.all_gather(every, mine)
longest = int(torch.stack(every).max())  # DECIDES
y = torch.empty(longest, 1 << 18, device="cuda")
dist.destroy_process_group()
