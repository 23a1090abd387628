"""A logger for each request, whose handler keeps what it is told.

truth: leak cause=loggerDict
"""

import logging
import logging.handlers
import time


def handle(request):
    log = logging.getLogger(f"request.{request}")
    log.propagate = False
    log.setLevel(logging.INFO)
    log.addHandler(logging.handlers.MemoryHandler(1000))
    log.info("payload %s", "x" * 60_000)  # LEAK


for request in range(700):
    handle(request)
    time.sleep(0.015)
