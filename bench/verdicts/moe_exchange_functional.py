"""As moe_exchange, by the functions that torchtitan calls.

gpu: 2 GiB
truth: fits, 8 + 16 + 64 MiB
flags: --world-size 4
says: peak of rank 0
"""

import os

import torch
import torch.distributed as dist
from torch.distributed._functional_collectives import all_to_all_single

TOKENS, EXPERTS, K, DIM = 2048, 8, 2, 1024
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
ranks = dist.get_world_size()
x = torch.randn(TOKENS, DIM, device="cuda")
chosen = torch.topk(x @ torch.randn(DIM, EXPERTS, device="cuda"), K).indices.flatten()
counts = torch.bincount(chosen, minlength=EXPERTS)
received = all_to_all_single(counts, None, None, dist.group.WORLD)
give, take = (each.view(ranks, -1).sum(1).tolist() for each in (counts, received))
tokens = x[chosen.argsort() // K]
into = all_to_all_single(tokens, take, give, dist.group.WORLD)
dist.destroy_process_group()
