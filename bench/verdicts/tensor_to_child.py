"""A tensor is handed to another process, which sees the same memory: there is one of it, and two contexts.

gpu: 1 GiB
truth: fits
"""

import torch
import torch.multiprocessing as mp


def work(queue, done) -> None:
    x = queue.get()
    x.add_(1)
    torch.cuda.synchronize()
    done.put(x.numel())


if __name__ == "__main__":
    context = mp.get_context("spawn")
    queue, done = context.Queue(), context.Queue()
    child = context.Process(target=work, args=(queue, done))
    child.start()
    x = torch.zeros(100 << 20, device="cuda")
    queue.put(x)
    print(done.get())
    child.join()
    assert child.exitcode == 0
