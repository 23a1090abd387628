"""Checks that only raise: which truth passes them, and whether the program catches what they raise and goes on."""

from __future__ import annotations

import ast
import builtins
from typing import Any, Optional

from ...places import is_library
from ..source import tree_of
from .scopes import Unknown, held, of

OUTWARDS = 12  # frames in which an exception may be caught


def caught(raises: str, frame: Any) -> bool:
    """Whether one of the program's own functions catches the exception of a check in this frame, and goes on."""
    for _ in range(OUTWARDS):
        if frame is None:
            break
        tree = None if is_library(frame.f_code.co_filename) else tree_of(frame.f_code.co_filename)
        line = frame.f_lineno or 0
        node: Any
        for node in ast.walk(tree) if tree is not None else ():
            within = isinstance(node, ast.Try) and node.body[0].lineno <= line <= (node.body[-1].end_lineno or line)
            if within and any(_catches(handler, raises, frame) for handler in node.handlers):
                return True
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "__main__":
            break
        frame = frame.f_back
    return False


def _catches(handler: Any, name: str, frame: Any) -> bool:
    """Whether an `except` takes an exception of this name and goes on."""
    if isinstance(handler.body[-1], ast.Raise) or _ends(handler.body[-1]):
        return False
    if handler.type is None:
        return True
    given = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    scopes = (*of(frame), vars(builtins))
    try:
        raised = held(ast.Name(name), scopes)
    except Unknown:
        raised = None
    for each in given:
        last = getattr(each, "attr", getattr(each, "id", ""))
        try:
            kind = held(each, scopes)
        except Unknown:
            kind = None
        if isinstance(raised, type) and isinstance(kind, type):
            if issubclass(raised, kind):
                return True
        elif last in (name, "Exception", "BaseException"):
            return True
    return False


def _ends(statement: Any) -> bool:
    call: Any = getattr(statement, "value", None)
    name = getattr(getattr(call, "func", None), "attr", getattr(getattr(call, "func", None), "id", ""))
    return name in ("exit", "_exit", "quit", "abort")


def passes(parent: Any, truth: Optional[bool], alone: Optional[bool] = None) -> Optional[bool]:
    """The truth value of the number with which a check that only raises does not raise; None: it is another branch.

    Args:
        truth: of the test, where the number is true.
        alone: where the number is a part of an `and` or `or`, the truth of the test that each part must have its
            share in: a true `and` has all parts true, a false `or` all of them false.
    """
    if isinstance(parent, ast.Assert):
        wanted = True
    elif isinstance(parent, ast.If) and not parent.orelse and _only_raises(parent.body[-1]):
        wanted = False
    else:
        return None
    if truth is None or alone not in (None, wanted):
        return None
    return truth if wanted else not truth


def _only_raises(statement: Any) -> bool:
    """Whether it is a `raise`, or `torch._assert(False, …)`."""
    if isinstance(statement, ast.Raise):
        return True
    call: Any = getattr(statement, "value", None)
    name = getattr(call.func, "attr", getattr(call.func, "id", "")) if isinstance(call, ast.Call) else ""
    given = call.args[:1] if name == "_assert" else []
    return bool(given) and getattr(given[0], "value", True) is False


def exception(check: Any) -> str:
    """The name of the exception of a check."""
    if isinstance(check, ast.Assert) or not isinstance(check.body[-1], ast.Raise):
        return "AssertionError"
    raised = check.body[-1].exc
    raised = raised.func if isinstance(raised, ast.Call) else raised
    return str(getattr(raised, "attr", getattr(raised, "id", "")))
