"""200 blocks of 2 MiB from calloc, every second one touched."""

import ctypes

from kernel import MiB, libc, mark, say

blocks = [libc.calloc(1, 2 * MiB) for _ in range(200)]
for block in blocks[::2]:
    ctypes.memset(block, 1, 2 * MiB)
mark()
say(held=200 * MiB)
