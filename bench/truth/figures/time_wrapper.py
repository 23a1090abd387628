"""A small parent that waits for a child of 400 MiB: the mark is the child's."""

import subprocess
import sys

from kernel import MiB, mark, tree

if len(sys.argv) > 1:
    held = b"x" * (400 * MiB)
    mark()
    tree()
else:
    subprocess.run([sys.executable, __file__, "child"], check=True)
