"""Four waves of ten children of 40 MiB; all waves are alike."""

import os

from kernel import Gate, MiB, touched, tree

for _wave in range(4):
    gate = Gate()
    for _number in range(10):
        if not os.fork():
            mine = touched(40 * MiB)
            gate.child()
            os._exit(0)
    gate.wait(10)
    tree(0.3)
    gate.let_go()
