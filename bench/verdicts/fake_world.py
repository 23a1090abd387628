"""A program that makes its own world of PyTorch's fake backend: one process is judged, whatever GPUs there are.

gpu: 1 GiB
truth: fits
flags: --gpus 8
says: as rank 3 of 256
says: without the buffers of NCCL, as its process group is fake
says not: 8 ×
"""

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", store=FakeStore(), rank=3, world_size=256)
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)]).cuda()
for layer in model:
    fully_shard(layer)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    model(torch.randn(64, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
