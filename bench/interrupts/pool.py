"""A pool of forked workers that leave interrupts to the main process, as pools that are to end cleanly do."""

import multiprocessing
import signal
import time


def begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def work(item: int) -> int:
    time.sleep(0.005)
    return sum(range(10_000)) + item


if __name__ == "__main__":
    with multiprocessing.Pool(3, initializer=begin) as pool:
        pool.map(work, range(6))
        print("ready", flush=True)
        while True:
            pool.map(work, range(12))
