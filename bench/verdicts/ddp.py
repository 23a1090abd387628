"""Data parallel training has buckets as large as the gradients.

gpu: 1 GiB
truth: fits
flags: --world-size 8 --play 0
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank() % 8)
model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(6)]).to("cuda")
model = DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    model(torch.randn(64, 2048, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
