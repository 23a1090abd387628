"""Takes 3 MiB every 5 ms, and ends at its peak."""

import time

from kernel import MiB, mark

held = []
for _ in range(100):
    held.append(b"x" * (3 * MiB))
    time.sleep(0.005)
mark()
