"""A process for each request, which ends when it has answered.

truth: innocent
"""

import subprocess
import sys
import time

kept = []
for _ in range(24):
    kept.append(subprocess.Popen([sys.executable, "-c", "import time; x = b'x' * 8_000_000; time.sleep(1.5)"]))
    time.sleep(0.5)
for child in kept:
    child.wait()
