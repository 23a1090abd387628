"""A shell that becomes the program: one process."""

import os
import sys

from kernel import MiB, mark

if len(sys.argv) > 1:
    held = b"x" * (220 * MiB)
    mark()
else:
    os.execv("/bin/sh", ["sh", "-c", 'exec "$0" "$1" go', sys.executable, __file__])
