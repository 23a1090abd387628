"""Two programs in a pipe, each with memory of its own."""

import os
import sys
import time

from kernel import MiB, tree

if len(sys.argv) == 1:
    os.execv("/bin/sh", ["sh", "-c", '"$0" "$1" first | "$0" "$1" second', sys.executable, __file__])
if sys.argv[1] == "first":
    held = b"x" * (120 * MiB)
    print("ready", flush=True)
    sys.stdout.close()
    os.close(1)
    end = time.monotonic() + 20
    while not os.path.exists(os.environ["TRUTH"]) and time.monotonic() < end:
        time.sleep(0.05)
else:
    held = b"x" * (180 * MiB)
    sys.stdin.read()
    tree(0.6, os.getppid())
