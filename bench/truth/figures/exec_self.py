"""Holds 250 MiB, then becomes a program that holds 40: the process's peak is of the first."""

import os
import sys
import time

from kernel import MiB, mark

if len(sys.argv) == 1:
    held = b"x" * (250 * MiB)
    time.sleep(0.4)
    mark()
    os.execv(sys.executable, [sys.executable, __file__, "again"])
held = b"x" * (40 * MiB)
time.sleep(0.4)
