"""300 MiB touched and given back by madvise, the mapping kept: 60 MiB are held."""

import mmap
import time

from kernel import MiB, mark, say, touched

block = mmap.mmap(-1, 300 * MiB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for i in range(0, 100 * MiB, 4096):
    block[i] = 1
block.madvise(mmap.MADV_DONTNEED)
time.sleep(0.5)
held = touched(160 * MiB)
time.sleep(0.5)
mark()
say(held=160 * MiB)
