"""Twelve children of 120 MiB, one after the other, 0.3 s each."""

import os

from kernel import Gate, MiB, touched, tree

for _number in range(12):
    gate = Gate()
    if not os.fork():
        mine = touched(120 * MiB)
        gate.child()
        os._exit(0)
    gate.wait(1)
    tree(0.3)
    gate.let_go()
