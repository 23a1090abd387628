"""Five forked children write to half of what they inherit, 300 MiB."""

import os

from kernel import Gate, MiB, touched, tree

held = touched(300 * MiB)
gate = Gate()
for _number in range(5):
    if not os.fork():
        held[: 150 * MiB : 4096] = bytes(150 * 256)
        gate.child()
        os._exit(0)
gate.wait(5)
tree(0.4)
gate.let_go()
