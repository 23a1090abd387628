"""Many small objects that come and go.

truth: innocent
"""

import time

for n in range(400):
    table = {i: [str(i), {"n": i}] for i in range(20_000)}
    sum(len(row) for row in table.values())
    time.sleep(0.005)
