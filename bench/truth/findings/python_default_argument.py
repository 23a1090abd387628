"""A list as a default argument lives as long as its function.

truth: leak cause=collect
"""

import time


def collect(item, seen=[]):  # noqa: B006
    seen.append(item)  # LEAK
    return len(seen)


for n in range(350):
    collect(bytearray(1 << 20))  # LEAK
    time.sleep(0.02)
