"""1 GiB is reserved at the beginning; of it 150 MiB are touched much later."""

import ctypes
import time

from kernel import MiB, libc, mark, say

block = libc.calloc(1, 1024 * MiB)
time.sleep(0.8)
ctypes.memset(block, 1, 150 * MiB)
time.sleep(0.5)
mark()
say(held=150 * MiB)
