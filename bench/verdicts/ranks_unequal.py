"""Ranks of a world that take different amounts: the fullest one that was played is told, and that there are others.

gpu: 1 GiB
truth: fits, 60 * 8 MiB
flags: --world-size 16
says: of rank 15
says: on ranks that take different amounts, 12 more were not played
"""

import os

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
kept = [torch.empty(2 << 20, device="cuda") for _ in range(4 * rank)]
dist.barrier()
dist.destroy_process_group()
