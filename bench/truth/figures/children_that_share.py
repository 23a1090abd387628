"""Six forked children of a parent with 700 MiB, which only wait."""

import os

from kernel import Gate, MiB, touched, tree

held = touched(700 * MiB)
gate = Gate()
for number in range(6):
    if not os.fork():
        mine = number
        gate.child()
        os._exit(0)
gate.wait(6)
tree(0.4)
gate.let_go()
