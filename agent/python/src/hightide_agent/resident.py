"""The process's resident set, read in about a microsecond: one pread of /proc/self/statm.

The descriptor is numbered high, out of the way of scripts that close or count the low ones, and
is only ever read from. If the script closed it, or something else took its number, the reading fails or
does not look like statm: then it is opened again. Nothing is imported then: the reading may be one of a collection of
garbage that came amid the program's own import, which a second import would break.
"""

from __future__ import annotations

import os
import sys

if sys.platform != "win32":
    import fcntl
    from os import pread

    PAGE = os.sysconf("SC_PAGE_SIZE")
_HIGH = 700  # preferred lowest descriptor number; lower where the limit is small
_REOPEN_LIMIT = 1000  # after so many, the script closes descriptors for a living: give up

at_fork = 0  # of a forked child: resident bytes as it began, which it shares with its parent

_fd = -1
_opened = 0


def rss() -> int:
    """Resident bytes of this process now; -1 where that cannot be read."""
    try:
        fields = pread(_fd, 80, 0).split()
        if len(fields) == 7 and fields[4] == b"0" and fields[6] == b"0":  # lib and dt are always 0
            return int(fields[1]) * PAGE
    except (OSError, ValueError):
        pass
    return _read_anew()


def forget() -> None:
    """In a forked child: our descriptor shows the parent's memory. Close it if it is still ours."""
    global _fd, _opened
    try:
        if _fd >= 0 and os.fstat(_fd).st_dev == os.stat("/proc/self/statm").st_dev:
            os.close(_fd)
    except OSError:
        pass
    _fd, _opened = -1, 0


def forked() -> None:
    """In a forked child, as it begins."""
    global at_fork
    forget()
    at_fork = max(rss(), 0)


def _read_anew() -> int:
    global _fd, _opened
    if _opened >= _REOPEN_LIMIT:
        return -1
    _opened += 1
    try:
        low = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _fd = _raised(low)
        finally:
            if _fd != low:
                os.close(low)
        return int(pread(_fd, 80, 0).split()[1]) * PAGE
    except (OSError, ValueError, IndexError):
        return -1


def _raised(fd: int) -> int:
    for lowest in (_HIGH, 200):
        try:
            return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, lowest)
        except (OSError, ValueError):  # the limit of open files is lower
            continue
    return fd


if sys.platform in ("darwin", "win32"):  # there is no /proc, and no descriptor to keep
    from .elsewhere import rss  # noqa: F401,F811
