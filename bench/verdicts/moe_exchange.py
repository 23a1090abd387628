"""Experts of four ranks: tokens go to the ranks of the experts that they chose, at most all of them to one rank.

gpu: 2 GiB
truth: fits, 8 + 16 + 64 MiB
flags: --world-size 4
says: peak of rank 0
"""

import os

import torch
import torch.distributed as dist

TOKENS, EXPERTS, K, DIM = 2048, 8, 2, 1024
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
ranks = dist.get_world_size()
x = torch.randn(TOKENS, DIM, device="cuda")
chosen = torch.topk(x @ torch.randn(DIM, EXPERTS, device="cuda"), K).indices.flatten()
counts = torch.bincount(chosen, minlength=EXPERTS)
received = torch.empty_like(counts)
dist.all_to_all_single(received, counts)
give, take = (each.view(ranks, -1).sum(1).tolist() for each in (counts, received))
tokens = x[chosen.argsort() // K]
into = torch.empty(sum(take), DIM, device="cuda")
dist.all_to_all_single(into, tokens, take, give)
dist.destroy_process_group()
