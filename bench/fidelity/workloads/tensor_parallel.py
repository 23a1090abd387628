"""Tensor parallel over a device mesh of two: columns, rows and sequence."""
# ranks: 2

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from transformer import BATCH, HEADS, LENGTH, WIDTH, WORDS, Model

mesh = init_device_mesh("cuda", (2,), mesh_dim_names=("tp",))
torch.cuda.set_device(dist.get_rank())
torch.manual_seed(0)
model = Model().cuda()
for block in model.blocks:
    plan = {f"attention.{name}": ColwiseParallel() for name in "qkv"}
    plan |= {"attention.o": RowwiseParallel(), "up": ColwiseParallel(), "down": RowwiseParallel()}
    parallelize_module(block, mesh, plan)
assert HEADS % 2 == 0 and WIDTH % HEADS == 0
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
for _ in range(3):
    ids = torch.randint(0, WORDS, (BATCH, LENGTH)).cuda()
    torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
