"""Pipeline parallel, 1F1B: two stages, four micro-batches."""
# ranks: 2

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from transformer import BATCH, LENGTH, WORDS, Model

dist.init_process_group("nccl")
rank, device = dist.get_rank(), torch.device("cuda", dist.get_rank())
torch.cuda.set_device(device)
model = Model()
half = len(model.blocks) // 2
parts = [[model.embedding, *model.blocks[:half]], [*model.blocks[half:], model.head]]
part = torch.nn.Sequential(*parts[rank]).to(device)
stage = PipelineStage(part, rank, 2, device)
criterion = lambda out, ids: torch.nn.functional.cross_entropy(out.flatten(0, 1), ids.flatten())  # noqa: E731
schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=criterion)
optimizer = torch.optim.AdamW(part.parameters())
for _ in range(3):
    ids = torch.randint(0, WORDS, (4 * BATCH, LENGTH), device=device)
    schedule.step(ids) if rank == 0 else schedule.step(target=ids)
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
