"""What ranks of a torchrun exchange, collective by collective; and small models under every way to be parallel.

torchrun --nproc-per-node N libraries_ranks.py exchange|ddp|fsdp1|fsdp2|tp|2d|hsdp|pp|oom
"""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

rank, ranks = int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"])
D = "cuda"


def on(values: list, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype).to(D)


def empty(n: int) -> torch.Tensor:
    return torch.empty(n, dtype=torch.int64, device=D)


def holds(tensor: torch.Tensor, wanted: list, what: object) -> None:
    got = tensor.cpu().tolist()
    assert got == wanted, f"{what}: rank {rank} has {got}, wanted {wanted}"


def exchange() -> None:
    every = list(range(ranks))
    narrow = (
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
        torch.uint8,
        torch.int8,
        torch.int32,
        torch.int64,
    )
    for dtype in narrow:
        for op, fold in ((dist.ReduceOp.SUM, sum), (dist.ReduceOp.MAX, max), (dist.ReduceOp.MIN, min)):
            x = on([rank + 1, 3], dtype)
            dist.all_reduce(x, op=op)
            holds(x, [fold(i + 1 for i in every), fold([3] * ranks)], (dtype, op))
    x = on([rank + 1.0], torch.float32)
    dist.all_reduce(x, op=dist.ReduceOp.AVG)
    holds(x, [(ranks + 1) / 2], "average")
    x = on([rank + 1.0], torch.float32)
    dist.all_reduce(x, op=dist._make_nccl_premul_sum(2.0))
    holds(x, [float(ranks * (ranks + 1))], "premultiplied sum")
    parts = [empty(2) for _ in every]
    dist.all_gather(parts, on([rank, -rank]))
    for i in every:
        holds(parts[i], [i, -i], "all_gather")
    x = empty(2)
    dist.reduce_scatter_tensor(x, on(list(range(2 * ranks))))
    holds(x, [ranks * 2 * rank, ranks * (2 * rank + 1)], "reduce_scatter")
    x = on([7 if rank == 1 else 0])
    dist.broadcast(x, 1)
    holds(x, [7], "broadcast")
    x = on([rank])
    dist.reduce(x, 0)
    if rank == 0:
        holds(x, [sum(every)], "reduce")
    x = empty(ranks)
    dist.all_to_all_single(x, on([10 * i + rank for i in every]))
    holds(x, [10 * rank + i for i in every], "all_to_all")
    x = empty(1)
    ring = [dist.P2POp(dist.isend, on([rank]), (rank + 1) % ranks), dist.P2POp(dist.irecv, x, (rank - 1) % ranks)]
    for work in dist.batch_isend_irecv(ring):
        work.wait()
    holds(x, [(rank - 1) % ranks], "send and receive")
    groups = [dist.new_group(list(range(i, ranks, 2))) for i in range(2)]
    x = on([rank])
    dist.all_reduce(x, group=groups[rank % 2])
    holds(x, [sum(range(rank % 2, ranks, 2))], "sub-group")
    dist.all_reduce(torch.randn(1000, 1000, device=D))


def block() -> nn.Sequential:
    return nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256))


def train(model: nn.Module) -> None:
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        model(torch.randn(8, 256, device=D)).pow(2).mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


def sharded(mesh: object = None) -> nn.Module:
    from torch.distributed.fsdp import fully_shard

    model = nn.Sequential(block(), block()).to(D)
    for layer in model:
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def tensor_parallel(mesh: object) -> nn.Module:
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    return parallelize_module(block().to(D), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})


def parallel(way: str) -> nn.Module:
    if way == "ddp":
        return nn.parallel.DistributedDataParallel(nn.Sequential(block(), nn.BatchNorm1d(256)).to(D), device_ids=[rank])
    if way == "fsdp1":
        from torch.distributed.fsdp import FullyShardedDataParallel as Shard

        return Shard(nn.Sequential(Shard(block().to(D)), block().to(D)), device_id=rank, sync_module_states=True)
    if way == "fsdp2":
        return sharded()
    if way == "hsdp":
        return sharded(init_device_mesh(D, (ranks // 2, 2), mesh_dim_names=("replicate", "shard")))
    if way == "tp":
        return tensor_parallel(init_device_mesh(D, (ranks,)))
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(D, (ranks // 2, 2), mesh_dim_names=("data", "tensor"))
    return fully_shard(tensor_parallel(mesh["tensor"]), mesh=mesh["data"])


def pipeline() -> None:
    """Each rank is a stage: activations forward, their gradients back, a label that stays known."""
    stage = block().to(D)
    optimizer = torch.optim.AdamW(stage.parameters())
    for step in range(2):
        x = torch.randn(64, 256, device=D, requires_grad=True)
        if rank:
            dist.recv(x.data, rank - 1)
        y, label = stage(x), on([step])
        if rank + 1 < ranks:
            dist.send(y.detach(), rank + 1)
            dist.send(on([10 * step + rank]), rank + 1)
            gradient = torch.empty_like(y)
            dist.recv(gradient, rank + 1)
            y.backward(gradient)
        else:
            y.pow(2).mean().backward()
        if rank:
            dist.recv(label, rank - 1)
            holds(label, [10 * step + rank - 1], "label")
            dist.send(x.grad, rank - 1)
        optimizer.step()
        optimizer.zero_grad()


def out_of_memory() -> None:
    """One rank asks for too much; the others wait for it until torchrun ends them, or learn that it is gone."""
    x = torch.empty(4 << 30, dtype=torch.uint8, device=D)
    if rank == 1:
        x = torch.cat([x, torch.empty(30 << 30, dtype=torch.uint8, device=D)])
    dist.barrier()
    print("not reached", len(x))


torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device(D, rank) if os.environ.get("SPLIT") else None)
for what in sys.argv[1:]:
    plain = {"exchange": exchange, "pp": pipeline, "oom": out_of_memory}.get(what)
    plain() if plain else train(parallel(what))
dist.barrier()
print(f"\nrank {rank} done", flush=True)
dist.destroy_process_group()
