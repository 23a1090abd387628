"""What names of a program hold and which function a call runs, found without running anything of the program."""

from __future__ import annotations

import ast
import sys
import types
from typing import Any, Iterator, Optional, Sequence, Tuple

from ..places import is_library

FILES = 20  # of the program's own that are looked through for a name


class Unknown(Exception):
    """It cannot be told."""


def of(frame: Any) -> Tuple[Any, ...]:
    """The names of a frame, innermost first."""
    return frame.f_locals, frame.f_globals


def held(node: Any, scopes: Sequence[Any]) -> Any:
    """What a name or an attribute holds.

    Raises:
        Unknown: it is another expression, or a property computes it.
    """
    if isinstance(node, ast.Name):
        for scope in scopes:
            if node.id in scope:
                return scope[node.id]
    elif isinstance(node, ast.Attribute):
        mine = getattr(held(node.value, scopes), "__dict__", {})
        if node.attr in mine:
            return mine[node.attr]
    raise Unknown


def callee(function: Any, scopes: Sequence[Any]) -> Optional[Tuple[Optional[Any], int]]:
    """The function that a call runs (None: not one of Python), and how many of its first parameters the call does not
    give. None: it cannot be told."""
    bound = 0
    try:
        found = held(function, scopes)
    except Unknown:
        if not isinstance(function, ast.Attribute):
            return None
        try:
            found, bound = _of_class(held(function.value, scopes), function.attr), 1
        except Unknown:
            return None
    if isinstance(found, (staticmethod, classmethod)):
        found, bound = found.__func__, int(isinstance(found, classmethod))
    if isinstance(found, types.MethodType):
        found, bound = found.__func__, 1
    if isinstance(found, type):
        found, bound = _of_class(found, "__init__", itself=True), 1
    elif not isinstance(found, (types.FunctionType, types.BuiltinFunctionType)):
        found, bound = _of_class(found, "forward") or _of_class(found, "__call__"), 1
    found = _unwrapped(found)
    return (found if isinstance(found, types.FunctionType) else None), bound


def _of_class(held: Any, name: str, itself: bool = False) -> Any:
    for each in (held if itself else type(held)).__mro__:
        if name in each.__dict__:
            return each.__dict__[name]
    return None


def _unwrapped(function: Any) -> Any:
    for _ in range(8):
        inner = getattr(function, "__dict__", {}).get("__wrapped__")
        if inner is None:
            break
        function = inner
    return function


def own_files() -> Iterator[str]:
    """The files of modules of the program's own."""
    count = 0
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and path.endswith(".py") and not is_library(path) and "hightide_agent" not in path:
            yield path
            count += 1
            if count == FILES:
                return
