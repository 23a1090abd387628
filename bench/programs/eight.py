"""Eight processes that each train a small torch model: python eight.py SECONDS [PROCESSES]."""

import multiprocessing
import sys
import time


def work(seconds: float) -> None:
    import torch

    torch.set_num_threads(1)
    model = torch.nn.Linear(256, 256)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        optimizer.zero_grad()
        model(torch.rand(64, 256)).sum().backward()
        optimizer.step()
        time.sleep(0.005)


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 7  # with this one, eight
    processes = [context.Process(target=work, args=(float(sys.argv[1]),)) for _ in range(count)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    sys.exit(max(process.exitcode or 0 for process in processes))
