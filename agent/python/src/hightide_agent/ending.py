"""How the program ended: the exception that nobody caught, if there was one.

Python keeps it in sys.last_value before it calls sys.excepthook, whichever hook that is: so the
script's own hook needs no company of ours, and the exception passes by unchanged.

A KeyboardInterrupt that nobody caught ends Python by SIGINT, if nothing is evaluated from text after it: CPython
then forgets it and exits with 1. namedtuple evaluates text, so neither typing nor re is imported at the end, and
what our own thread may have imported meanwhile is made good.
"""

from __future__ import annotations

import sys

from . import oom
from .agent import Agent
from .places import text_of, where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional


def interrupted() -> bool:
    """Whether a KeyboardInterrupt ended the program, so that Python ends by the signal: not so under -m."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    return type(error) is KeyboardInterrupt and getattr(sys.modules.get("__main__"), "__spec__", None) is None


def interrupt_again() -> None:
    """Have CPython remember that nobody caught the interrupt."""
    try:
        exec("raise KeyboardInterrupt")
    except KeyboardInterrupt:
        pass


def report(agent: Agent) -> None:
    """Record the exception that ended the program."""
    error: Optional[BaseException] = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if error is not None and not isinstance(error, SystemExit):
        tell(agent, error)


def tell(agent: Agent, error: BaseException) -> None:
    """Record an exception that ended the program, or a process of multiprocessing."""
    oom.notice(agent, error)
    file, line, function = where(error)
    record = {"type": "exception", "class": type(error).__name__, "text": text_of(error), "file": file, "line": line,
              "function": function}  # fmt: skip
    first = _first(error)
    if first is not error:
        record["from"] = "%s: %s" % (type(first).__name__, text_of(first))
    agent.record(record)


def _first(error: BaseException) -> BaseException:
    """The exception in whose handling this one was raised, and so on."""
    for _ in range(8):
        before = error.__cause__ or error.__context__
        if before is None or before is error:
            break
        error = before
    return error
