"""Fully sharded: each of 8 ranks has an eighth of 1.5 GiB, and one block at a time whole.

gpu: 1 GiB
truth: fits
flags: --world-size 8 --play 0
"""

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel, wrap

dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank() % 8)
model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096, bias=False) for _ in range(6)])
policy = wrap.ModuleWrapPolicy({torch.nn.Linear})
model = FullyShardedDataParallel(model, auto_wrap_policy=policy, device_id=torch.cuda.current_device())
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    model(torch.randn(64, 4096, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
