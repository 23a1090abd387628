"""What names of functions that run hold, read without keeping it."""

from __future__ import annotations

import sys
from collections import deque
from itertools import compress
from types import FrameType

TYPE_CHECKING = False  # for type checkers only: see ending.py
if TYPE_CHECKING:
    from typing import Any, Dict, List

OPTIMIZED = 1  # CO_OPTIMIZED: a function's code, not a module's or a class's


def variables(frame: FrameType) -> Dict[str, Any]:
    """What a frame's names hold: of a function in a dict of the caller's own, else the very names.

    Before 3.13 Python keeps what it has shown on the frame, until it is asked again or the function returns. That
    would keep tensors alive, so it is emptied, unless the program has it, too: by locals(), or in a debugger.
    """
    shown = frame.f_locals
    if not frame.f_code.co_flags & OPTIMIZED:
        return shown
    found = dict(shown)
    if sys.version_info < (3, 13):
        _empty(shown, _alone())
    return found


def _empty(shown: Dict[str, Any], most: int) -> None:
    """Empty a dict to which no more than so many refer: in one call in C, and the program does not run meanwhile."""
    one = (shown,)
    deque(map(dict.clear, compress(one, map(most.__ge__, map(sys.getrefcount, one)))), 0)


def _alone() -> int:
    """How many refer to a dict there that one object has, as a frame has what it shows; 0: not known."""
    if not _ALONE:
        _ALONE.append(0)
        owner = [{"": None}]
        shown = owner[0]
        for most in range(2, 24):
            _empty(shown, most)
            if not shown:
                _ALONE[0] = most
                break
    return _ALONE[0]


_ALONE: List[int] = []  # once it was asked for
