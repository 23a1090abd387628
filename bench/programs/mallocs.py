"""About a million small mallocs a second: python mallocs.py SECONDS.

Each bytes of 1,000 is one malloc and one free (Python serves only 512 bytes and less by itself).
The work between them brings the rate to about 10^6 a second; the number is fixed, not the time.
Prints the loop's own seconds and the rate it had.
"""

import sys
import time

COUNT = int(float(sys.argv[1]) * 1_000_000)


def churn(count: int) -> int:
    total = 0
    kept: "list[bytes]" = [b""] * 64  # some live for a while, as in real programs
    for i in range(count):
        block = bytes(1000)
        kept[i & 63] = block
        for j in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14):
            total += i * j & 7
    return total


churn(10_000)
begin = time.perf_counter()
churn(COUNT)
seconds = time.perf_counter() - begin
print(seconds, COUNT / seconds)
