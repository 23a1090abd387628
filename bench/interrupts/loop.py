"""A loop that nobody prepared for an interrupt."""

import time

print("ready", flush=True)
while True:
    total = sum(range(10_000))
    time.sleep(0.001)
