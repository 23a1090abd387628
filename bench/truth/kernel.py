"""What the kernel says of a program, told by the program itself where it knows that it is at its peak.

Programs of figures/ import this. What they say goes to the file $TRUTH, a JSON object a line; of several of
one key the largest counts.
"""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import time
from typing import Any

MiB = 1 << 20
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.calloc.restype = ctypes.c_void_p
libc.malloc.argtypes, libc.calloc.argtypes = [ctypes.c_size_t], [ctypes.c_size_t, ctypes.c_size_t]


def say(**facts: int) -> None:
    with open(os.environ["TRUTH"], "a") as file:
        file.write(json.dumps(facts) + "\n")


def field(path: str, key: str) -> int:
    try:
        with open(path) as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith(key + ":")), 0)
    except OSError:
        return 0  # it ended


def mark() -> None:
    """Say the high-water mark of this process."""
    say(maxrss=field("/proc/self/status", "VmHWM"))


def descendants(pid: int) -> list[int]:
    found = [pid]
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/children") as file:
                for child in file.read().split():
                    found += descendants(int(child))
        except OSError:
            continue
    return found


def tree(seconds: float = 0.4, root: int = 0) -> None:
    """Stay as it is for a while, and say what this process and all below it take together."""
    pids = descendants(root or os.getpid())
    time.sleep(seconds / 2)
    say(pss=sum(field(f"/proc/{pid}/smaps_rollup", "Pss") for pid in pids))
    time.sleep(seconds / 2)


def touched(size: int) -> bytearray:
    block = bytearray(size)
    block[::4096] = b"x" * len(block[::4096])
    return block


class Gate:
    """Lets forked children tell that they are ready, and go when all are."""

    def __init__(self) -> None:
        self.ready, self.tell = os.pipe()
        self.go, self.open = os.pipe()

    def child(self) -> None:
        os.close(self.open)
        os.write(self.tell, b".")
        os.read(self.go, 1)

    def wait(self, count: int) -> None:
        while count:
            count -= len(os.read(self.ready, 4096))

    def let_go(self) -> None:
        os.close(self.open)
        try:
            while True:
                os.wait()
        except ChildProcessError:
            pass


def _hold(barrier: Any, size: int) -> None:
    held = touched(size)
    barrier.wait()
    barrier.wait()
    os.write(2, b"" if held else b"never")


def pool(method: str, workers: int, size: int) -> None:
    """Workers of multiprocessing that hold so many bytes each, all at once."""
    context: Any = multiprocessing.get_context(method)
    barrier = context.Barrier(workers + 1)
    started = [context.Process(target=_hold, args=(barrier, size)) for _ in range(workers)]
    for worker in started:
        worker.start()
    barrier.wait()
    tree()
    barrier.wait()
    for worker in started:
        worker.join()
