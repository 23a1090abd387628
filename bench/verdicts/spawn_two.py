"""Two processes share a GPU, each with a context of its own; there is room for both.

gpu: 1 GiB
truth: fits
"""

import torch
import torch.multiprocessing as mp


def work(rank: int, barrier) -> None:
    kept = torch.ones(50 << 20, device="cuda")
    torch.cuda.synchronize()
    barrier.wait()
    del kept


if __name__ == "__main__":
    context = mp.get_context("spawn")
    mp.spawn(work, (context.Barrier(2),), nprocs=2)
