"""A worker of 150 MiB is killed; its parent had 300 MiB before and takes 350 after."""

import os
import signal
import time

from kernel import Gate, MiB, mark, touched

held = touched(300 * MiB)
del held
gate = Gate()
child = os.fork()
if not child:
    mine = touched(150 * MiB)
    gate.child()
    os._exit(0)
gate.wait(1)
time.sleep(0.3)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
held = touched(350 * MiB)
mark()
