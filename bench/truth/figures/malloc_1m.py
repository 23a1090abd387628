"""50 blocks of 1 MiB from malloc, all written; it ends at once."""

import ctypes

from kernel import MiB, libc, mark, say

for _ in range(50):
    ctypes.memset(libc.malloc(MiB), 1, MiB)
mark()
say(held=50 * MiB)
