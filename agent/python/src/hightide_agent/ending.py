"""How the program ended: the exception that nobody caught, if there was one.

Python keeps it in sys.last_value before it calls sys.excepthook, whichever hook that is: so the
script's own hook needs no company of ours, and the exception passes by unchanged.
"""

from __future__ import annotations

import sys
from typing import Any, Optional

from .agent import Agent
from .masking import mask


def report(agent: Agent) -> None:
    """Record the exception that ended the program."""
    error: Optional[BaseException] = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if error is None or isinstance(error, SystemExit):
        return
    file, line, function = where(error)
    text = text_of(error)
    agent.record(
        {"type": "exception", "class": type(error).__name__, "text": text, "file": file, "line": line,
         "function": function}
    )  # fmt: skip


def text_of(error: BaseException) -> str:
    """The exception's message, secrets masked."""
    try:
        return mask(str(error)[:4000])
    except Exception:
        return ""


def where(error: BaseException) -> "tuple[str, int, str]":
    """File, line and function of the innermost frame that is the user's own, else the innermost."""
    found = ("", 0, "")
    trace: Any = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not found[0] or not is_library(code.co_filename):
            found = (code.co_filename, trace.tb_lineno or 0, getattr(code, "co_qualname", code.co_name))
        trace = trace.tb_next
    return found


def is_library(filename: str) -> bool:
    """Whether a source file belongs to Python or an installed package, not to the user."""
    return (
        "site-packages" in filename
        or "dist-packages" in filename
        or filename.startswith("<")
        or filename.startswith((sys.base_prefix + "/lib/python", sys.prefix + "/lib/python"))
        or "/hightide_agent/" in filename
    )
