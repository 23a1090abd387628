"""An anonymous mapping of 400 MiB, half of it touched."""

import mmap

from kernel import MiB, mark, say

block = mmap.mmap(-1, 400 * MiB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for i in range(0, 200 * MiB, 4096):
    block[i] = 1
mark()
say(held=200 * MiB)
