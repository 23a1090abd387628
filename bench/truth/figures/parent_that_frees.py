"""A parent that frees 400 MiB after its children have begun: they still have them."""

import os

from kernel import Gate, MiB, touched, tree

held = touched(400 * MiB)
gate = Gate()
for _number in range(3):
    if not os.fork():
        mine = touched(10 * MiB)
        gate.child()
        os._exit(0)
gate.wait(3)
del held
tree(0.4)
gate.let_go()
