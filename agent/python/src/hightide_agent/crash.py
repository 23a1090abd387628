"""Where the program is when a fatal signal ends it, as a segmentation fault: Python's own fault handler writes that
into a file beside the channel, which the engine reads once the process has ended.

A program that has a fault handler of its own keeps it. The signal ends the program as it would have.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # for type checkers only: see ending.py
if TYPE_CHECKING:
    from typing import Optional

# The program's own files get low numbers. One that closes all it does not know, and opens others, never gets this one:
# what is written at the end would stand in its file.
NUMBER = 1000
_ours: Optional[tuple[int, int]] = None  # the device and the inode of our file


def watch(channel: str) -> None:
    """Have a crash of this process told in a file beside its channel. Does nothing where that cannot be."""
    global _ours
    if os.name != "posix":  # Windows tells also of what the program goes on from
        return
    import faulthandler

    before, _ours = _ours, None
    there = _file_at(NUMBER)
    if before is None:
        free = there is None and not faulthandler.is_enabled()
    else:  # a forked child, or another recording
        free = there == before
        if not free:
            faulthandler.disable()
    if not free:
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(channel[: -len(".ring")] + ".crash", flags, 0o600)
    try:
        os.dup2(fd, NUMBER, inheritable=False)
    except OSError:  # the process may not have so many files
        return
    finally:
        os.close(fd)
    _ours = _file_at(NUMBER)
    if before is None:
        # A free-threaded Python shows the crashed thread alone, whatever is asked for.
        faulthandler.enable(NUMBER, all_threads=True)


def _file_at(number: int) -> Optional[tuple[int, int]]:
    try:
        found = os.fstat(number)
    except OSError:
        return None
    return found.st_dev, found.st_ino
