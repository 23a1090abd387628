"""Exit handlers of its own run after an interrupt."""

import atexit
import time

atexit.register(print, "left")
print("ready", flush=True)
while True:
    time.sleep(0.001)
