"""A shell that runs two programs, one after the other; the first is the larger."""

import os
import sys

from kernel import MiB, mark, tree

if len(sys.argv) > 1:
    held = b"x" * (int(sys.argv[1]) * MiB)
    mark()
    tree(root=os.getppid())
else:
    os.execv("/bin/sh", ["sh", "-c", '"$0" "$1" 300; "$0" "$1" 100; true', sys.executable, __file__])
