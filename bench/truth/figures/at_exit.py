"""An atexit function takes 250 MiB."""

import atexit

from kernel import MiB, mark


def last():
    held = b"x" * (250 * MiB)
    mark()
    del held


atexit.register(last)
