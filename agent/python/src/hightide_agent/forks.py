"""Telling at once, and without a system call, that this is another process than before.

A page of memory that the kernel empties in every child (MADV_WIPEONFORK, Linux 4.14) holds a mark. Where the
mark is gone there was a fork, also one that Python's own hooks never saw. Without such a page
the mark is never there, and the caller asks for the process's number each time.
"""

from __future__ import annotations

from .channel import MAP_ANONYMOUS, MAP_PRIVATE, mapped

TYPE_CHECKING = False  # for type checkers only: importing typing takes longer than all the rest of the start
if TYPE_CHECKING:
    from typing import Any

MARKED = 1
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
        except (ImportError, OSError, AttributeError):
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
