"""Processes of concurrent.futures, started anew."""

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor


def work(item: int) -> int:
    time.sleep(0.005)
    return sum(range(10_000)) + item


if __name__ == "__main__":
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(work, range(4)))
        print("ready", flush=True)
        while True:
            list(pool.map(work, range(8)))
