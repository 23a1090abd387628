"""Each turn makes a longer list of its own, and keeps none of the ones before.

truth: innocent
"""

import time

for n in range(350):
    batch = [bytearray(1000) for _ in range(1000 + 4 * n)]
    total = sum(map(len, batch))
    time.sleep(0.02)
