"""FullyShardedDataParallel, the first: flat parameters, mixed precision, CPU-built model, two ranks."""
# ranks: 2

import functools

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
from transformer import BATCH, LENGTH, WORDS, Block, Model

dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank())
model = FullyShardedDataParallel(
    Model(), device_id=torch.cuda.current_device(),
    auto_wrap_policy=functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Block}),
    mixed_precision=MixedPrecision(torch.bfloat16, torch.float32),
)  # fmt: skip
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    ids = torch.randint(0, WORDS, (BATCH, LENGTH)).cuda()
    torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
    model.clip_grad_norm_(1.0)
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
