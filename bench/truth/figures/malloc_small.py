"""40 MiB in blocks of 1,000 bytes."""

import ctypes

from kernel import libc, mark, say

for _ in range(40_000):
    ctypes.memset(libc.malloc(1000), 1, 1000)
mark()
say(held=40_000_000)
