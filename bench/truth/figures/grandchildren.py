"""Children that fork children of their own; each holds 30 MiB."""

import os

from kernel import Gate, MiB, touched, tree

gate = Gate()
for _number in range(3):
    if not os.fork():
        mine = touched(30 * MiB)
        for _ in range(2):
            if not os.fork():
                more = touched(30 * MiB)
                gate.child()
                os._exit(0)
        gate.child()
        os._exit(0)
gate.wait(9)
tree()
gate.let_go()
