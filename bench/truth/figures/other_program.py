"""A parent of 100 MiB and a child that runs another program, of 200 MiB."""

import os
import subprocess
import sys

from kernel import MiB, touched, tree

if len(sys.argv) > 1:
    held = touched(200 * MiB)
    tree(root=os.getppid())
else:
    held = touched(100 * MiB)
    subprocess.run([sys.executable, __file__, "child"], check=True, close_fds=True)
