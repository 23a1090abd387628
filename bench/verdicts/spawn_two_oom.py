"""Two processes share a GPU, each with a context of its own: what fits once beside one context does not beside two.

gpu: 1 GiB
truth: out of memory
"""

import torch
import torch.multiprocessing as mp


def work(rank: int, barrier) -> None:
    kept = torch.ones(75 << 20, device="cuda")
    torch.cuda.synchronize()
    barrier.wait()
    del kept


if __name__ == "__main__":
    context = mp.get_context("spawn")
    mp.spawn(work, (context.Barrier(2),), nprocs=2)
