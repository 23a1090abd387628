"""Holds 80 MB in 4,000 blocks that are each far below what is recorded without sampling."""

import time

held = []
for _ in range(4000):
    held.append(bytes(20_000))  # LEAK
time.sleep(0.4)
