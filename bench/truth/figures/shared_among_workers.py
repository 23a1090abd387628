"""300 MiB of shared memory that five processes map."""

import mmap
import os

from kernel import Gate, MiB, tree

block = mmap.mmap(-1, 300 * MiB)
for i in range(0, 300 * MiB, 4096):
    block[i] = 1
gate = Gate()
for _number in range(4):
    if not os.fork():
        total = sum(block[i] for i in range(0, 300 * MiB, 4096))
        gate.child()
        os._exit(0)
gate.wait(4)
tree()
gate.let_go()
