"""Sixteen forked workers of 5 MiB each."""

import multiprocessing
import os

from kernel import MiB, touched, tree


def work(barrier):
    held = touched(5 * MiB)
    barrier.wait()
    barrier.wait()
    os.write(2, b"" if held else b"never")


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(17)
    workers = [context.Process(target=work, args=(barrier,)) for _ in range(16)]
    for worker in workers:
        worker.start()
    barrier.wait()
    tree()
    barrier.wait()
    for worker in workers:
        worker.join()
