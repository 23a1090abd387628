"""What it has is saved when it is interrupted, which takes a moment; it ends with a code of its own."""

import sys
import time

try:
    print("ready", flush=True)
    while True:
        total = sum(range(10_000))
except KeyboardInterrupt:
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        total = sum(range(10_000))
    print("saved", flush=True)
    sys.exit(3)
