"""A process for each request, which nobody ends.

truth: leak cause=one.more
"""

import subprocess
import sys
import time

kept = []
for _ in range(24):
    kept.append(subprocess.Popen([sys.executable, "-c", "import time; x = b'x' * 8_000_000; time.sleep(600)"]))
    time.sleep(0.5)
for child in kept:
    child.kill()
