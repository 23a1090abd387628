"""What names of functions that run hold, read without keeping it."""

from __future__ import annotations

import sys
from types import FrameType

TYPE_CHECKING = False  # for type checkers only: see ending.py
if TYPE_CHECKING:
    from typing import Any, Dict

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
    if sys.version_info < (3, 13) and sys.getrefcount(shown) <= 3:
        shown.clear()
    return found
