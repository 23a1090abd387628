"""Memory that processes may share is mapped at each turn and kept, as much at once as Python asks for its small objects.

truth: leak cause=mapped
"""

import mmap
import time

mapped = []
for turn in range(160):
    block = mmap.mmap(-1, 1 << 20)
    block[:] = b"x" * len(block)
    mapped.append(block)  # LEAK
    time.sleep(0.05)
