"""About a million small mallocs a second, a block at a time: python mallocs.py.

For each line on stdin, a number of mallocs, it makes that many and prints the seconds they took: of the
wall clock, and of this process's processor time. Each bytes of 1,000 is one malloc and one free
(Python serves only 512 bytes and less by itself). The work between them brings the rate to about 10^6 a
second.
"""

import sys
import time


def churn(count: int) -> int:
    total = 0
    kept: "list[bytes]" = [b""] * 64  # some live for a while, as in real programs
    for i in range(count):
        block = bytes(1000)
        kept[i & 63] = block
        for j in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14):
            total += i * j & 7
    return total


def block(count: int) -> str:
    wall, cpu = time.perf_counter(), time.process_time()
    churn(count)
    return f"{time.perf_counter() - wall} {time.process_time() - cpu}"


block(100_000)
print("ready", flush=True)
for line in sys.stdin:
    print(block(int(line)), flush=True)
