"""400 MiB for a moment, in a run of a second: between two looks."""

import time

from kernel import MiB, mark

kept = b"x" * (30 * MiB)
time.sleep(0.5)
x = b"x" * (400 * MiB)
del x
time.sleep(0.5)
mark()
