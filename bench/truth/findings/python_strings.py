"""Lines of a log, kept for a summary.

truth: leak cause=`lines`
"""

import time

lines = []
for n in range(400):
    for i in range(300):
        lines.append(f"{n:08d} {i:08d} " + "x" * 200)  # LEAK
    time.sleep(0.016)
