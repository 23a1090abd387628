"""Telling at once, and without a system call, that this is another process than before; and `work`, which no fork cuts.

A page of memory that the kernel empties in every child (MADV_WIPEONFORK, Linux 4.14) holds a mark. Where the
mark is gone there was a fork, also one that Python's own hooks never saw. Without such a page
the mark is never there, and the caller asks for the process's number each time.
"""

from __future__ import annotations

import _thread

from .channel import MAP_ANONYMOUS, MAP_PRIVATE, mapped

TYPE_CHECKING = False  # for type checkers only: importing typing takes longer than all the rest of the start
if TYPE_CHECKING:
    from typing import Any

MARKED = 1
PATIENCE = 5.0  # seconds that a fork waits; what does not end in that time may wait for the thread that forks
_MADV_WIPEONFORK = 18
_page: Any = None
_tried = False


def mark() -> Any:
    """Mark this process: a sequence whose first item is MARKED until a fork, and in no child."""
    global _page, _tried
    if _page is None and not _tried:
        _tried = True
        try:
            _page = _wiped_page()
        except (ImportError, OSError, AttributeError, TypeError):  # elsewhere than on Linux
            pass
    if _page is None:
        return (0,)
    _page[0] = MARKED
    return _page


def _wiped_page() -> Any:
    import ctypes

    address = mapped(-1, 4096, MAP_PRIVATE | MAP_ANONYMOUS)
    advise = ctypes.CDLL(None, use_errno=True).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    if advise(address, 4096, _MADV_WIPEONFORK) != 0:
        raise OSError(ctypes.get_errno(), "madvise")
    return memoryview((ctypes.c_char * 4096).from_address(address)).cast("B")


class Work:
    """`with work:` is around all that a thread of ours does, so that a fork of the process comes before it or after.

    A fork in the middle leaves the child the locks that the thread holds, as that of a module it imports, and not the
    thread: who imports the module there waits for ever. A fork that Python does not know of is not held up.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """In a forked child: nothing is at work, whatever was in the parent."""
        self._lock = _thread.allocate_lock()
        self._worker = self._forker = 0  # the thread that holds it, for its work or for its fork

    def __enter__(self) -> None:
        if self._lock.acquire(True, PATIENCE):
            self._worker = _thread.get_ident()

    def __exit__(self, *_: object) -> None:
        if self._worker == _thread.get_ident():
            self._worker = 0
            self._lock.release()

    def wait(self, seconds: float) -> None:
        """Until what goes on now has ended."""
        if self._lock.acquire(True, seconds):
            self._lock.release()

    def before_fork(self) -> None:
        """Wait for what goes on, and let nothing begin."""
        me = _thread.get_ident()
        if self._worker != me and self._lock.acquire(True, PATIENCE):
            self._forker = me

    def after_fork(self) -> None:
        """In the parent: go on."""
        if self._forker == _thread.get_ident():
            self._forker = 0
            self._lock.release()


work = Work()  # of this process
