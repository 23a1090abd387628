"""A logger that gets another handler at each call, each with a buffer.

truth: leak cause=handlers|addHandler
"""

import logging
import time


class Buffered(logging.Handler):
    def __init__(self):
        super().__init__()
        self.buffer = bytearray(1 << 20)  # LEAK

    def emit(self, record):
        pass


def task(n):
    logging.getLogger("task").addHandler(Buffered())  # LEAK


for n in range(350):
    task(n)
    time.sleep(0.02)
