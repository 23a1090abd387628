"""Sixty children of 15 MiB each, for half a second."""

import os

from kernel import Gate, MiB, touched, tree

held = touched(1 * MiB)
gate = Gate()
for _number in range(60):
    if not os.fork():
        mine = touched(15 * MiB)
        gate.child()
        os._exit(0)
gate.wait(60)
tree(0.4)
gate.let_go()
