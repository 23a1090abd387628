"""The first interrupt asks it to end in good order, a second one would end it at once with another code."""

import os
import signal
import sys
import time

asked = 0


def handle(number, frame):
    global asked
    asked += 1
    if asked > 1:
        os._exit(9)


signal.signal(signal.SIGINT, handle)
print("ready", flush=True)
while not asked:
    time.sleep(0.01)
time.sleep(0.3)
sys.exit(4)
