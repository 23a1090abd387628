"""Functions that a library jits in its own: Equinox has JAX compile one of Equinox's, with the name of the user's.
Whose it is says the object that was called: its __wrapped__."""

from __future__ import annotations

import re
import sys
from typing import Any, Optional, Tuple

from ..frames import variables
from ..places import is_library

OWN = "/jax/_src/"  # where functions of JAX itself stand
STACK = 40  # frames between what is compiled and the program's call of it
DEPTH = 8  # of wrappers around one function
INNER = ("__wrapped__", "__func__", "func")  # what a wrapper, a method and a partial call

Place = Tuple[str, str, int]  # name, file and line; a file "" where there is none


def placed(source: str) -> Place:
    """Name, file and line of a function as JAX writes it."""
    found = re.match(r"(.+) at (.+):(\d+)$", source)
    return (found.group(1), found.group(2), int(found.group(3))) if found is not None else (source, "", 0)


def place(source: str, frame: Any) -> Tuple[Place, bool]:
    """Where a function stands that is compiled for a call in `frame`, and whether a library has it wrapped."""
    name, file, line = placed(source)
    if file and OWN not in file and is_library(file):
        code = _code(name, file, frame)
        if code is not None:
            return (name, code.co_filename, code.co_firstlineno), True
    return (name, file, line), False


def _code(name: str, file: str, frame: Any) -> Any:
    """The user's function of that name, in what runs of the library that has this file; None: none is seen."""
    for _ in range(STACK):
        if frame is None or not is_library(frame.f_code.co_filename):
            return None
        if frame.f_code.co_filename == file:
            for value in list(variables(frame).values()):
                if getattr(type(value), "__module__", None) == frame.f_globals.get("__name__"):
                    code = _unwrapped(value)
                    if code is not None and code.co_name == name.rpartition(".")[2]:
                        return code
        frame = frame.f_back
    return None


def _unwrapped(value: Any) -> Optional[Any]:
    """The code of the program's own that an object calls in the end."""
    for _ in range(DEPTH):
        code = getattr(value, "__code__", None)
        if code is not None and not is_library(code.co_filename):
            return code
        inner = next((getattr(value, name) for name in INNER if hasattr(value, name)), None)
        if inner is None:  # an object that is called has its class's __call__
            inner = next((vars(kind)["__call__"] for kind in type(value).__mro__ if "__call__" in vars(kind)), None)
        if inner is None or inner is value:
            return None
        value = inner
    return None


def is_wrapper(frame: Any) -> bool:
    """Whether a frame is of a library that gives on what a function gave that it wraps."""
    return "/equinox/" in frame.f_code.co_filename.replace("\\", "/") and "equinox" in sys.modules
