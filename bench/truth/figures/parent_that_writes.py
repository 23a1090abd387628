"""A parent that writes to 200 MiB which its children share."""

import os

from kernel import Gate, MiB, touched, tree

held = touched(200 * MiB)
gate = Gate()
for number in range(3):
    if not os.fork():
        mine = number
        gate.child()
        os._exit(0)
gate.wait(3)
held[::4096] = bytes(200 * 256)
tree(0.4)
gate.let_go()
