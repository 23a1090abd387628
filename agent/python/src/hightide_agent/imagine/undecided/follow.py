"""Where a number goes that the host has just read from the device: whether it can decide how much memory is taken.

    the reading frame ─▶ uses.py: what it decides in this function ─▶ that
                                     └ returned ─▶ the caller's frame, and so on

What cannot be told is taken to decide for whole numbers. Each place is looked at once.
"""

from __future__ import annotations

from typing import Any, Dict, Tuple

from ...places import is_library
from ..source import function_of, position, tree_of
from .checks import caught
from .scopes import of, takes_back
from .uses import NOTHING, Function, Use

DEEPEST = 6  # callers
OF_TORCH = ("/torch/_tensor.py", "/torch/_ops.py", "/torch/functional.py")
WRITES = (
    "/torch/_tensor_str.py", "/torch/serialization.py", "/torch/storage.py", "/safetensors/torch.py",
    "/torch/distributed/distributed_c10d.py",  # how long an object is that ranks send each other
)  # fmt: skip


def follow(frame: Any, floating: bool) -> Use:
    """What the number decides that is being read in this frame."""
    return followed(frame, floating)[0]


def followed(frame: Any, floating: bool) -> Tuple[Use, Any]:
    """As follow, with the frame in which it decides, or in which it is compared."""
    test, at, stored = None, None, ""
    for depth in range(DEEPEST):
        if frame is None:
            break
        code = frame.f_code
        key = (code, frame.f_lasti, floating, stored)
        found = _seen.get(key)
        if found is None:
            found = _look(frame, floating, bool(depth), stored)
            if found.passes is not None:
                found = found._replace(caught=caught(found.raises, frame))
            _seen[key] = found
        if found.kind != "returned":
            return (found, frame) if found.test is not None or test is None else (found._replace(test=test), at)
        if found.test is not None and test is None:
            test, at = found.test, frame
        if not found.stored and takes_back(frame):
            return NOTHING, frame
        frame, stored = frame.f_back, found.stored
    return (NOTHING if floating else Use("passed on", 0)), frame


_seen: Dict[Tuple[Any, int, bool, str], Use] = {}


def _look(frame: Any, floating: bool, result: bool, stored: str) -> Use:
    """One frame. `result`: what is read came back from a call at this place; `stored`: in this parameter of it."""
    code, line = frame.f_code, frame.f_lineno or 0
    function = function_of(code)
    if function is None:  # no source: an interpreter's prompt
        return NOTHING if floating else Use("passed on", line)
    tree = None if is_library(code.co_filename) else tree_of(code.co_filename)
    return Function(function, floating, tree, scopes=of(frame)).uses(
        position(code, frame.f_lasti, line), result, stored
    )


def reader(frame: Any) -> Any:
    """The innermost frame, from this one outwards, that is neither the agent's nor PyTorch's own reading; None: the
    number is read to be printed, or saved."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name.endswith(WRITES):
            return None
        if "hightide_agent" not in name and not name.endswith(OF_TORCH):
            return frame
        frame = frame.f_back
    return None
