"""Four children share 300 MiB and load 80 MiB more each."""

import os

from kernel import Gate, MiB, touched, tree

held = touched(300 * MiB)
gate = Gate()
for _number in range(4):
    if not os.fork():
        mine = touched(80 * MiB)
        gate.child()
        os._exit(0)
gate.wait(4)
tree(0.4)
gate.let_go()
