"""What names of a program hold and which function a call runs, found without running anything of the program."""

from __future__ import annotations

import ast
import sys
import types
from typing import Any, Iterator, Optional, Sequence, Tuple

from ...frames import variables
from ...places import is_library
from ..source import function_of, position

FILES = 20  # of the program's own that are looked through for a name


class Unknown(Exception):
    """It cannot be told."""


def of(frame: Any) -> Tuple[Any, ...]:
    """The names of a frame, innermost first."""
    return variables(frame), frame.f_globals


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


def takes_back(frame: Any) -> bool:
    """Whether it is an operator of PyTorch in C++ that called the function of a frame, as a hook of autograd. What the
    function returns goes to autograd, and is not what the operator gives."""
    caller = frame.f_back
    function = None if caller is None else function_of(caller.f_code)
    if function is None:
        return False
    at = position(caller.f_code, caller.f_lasti, caller.f_lineno or 0)
    for node in ast.walk(function):
        if isinstance(node, (ast.Call, ast.BinOp, ast.UnaryOp)) and (
            (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset) == at
        ):
            if isinstance(node, ast.Call):
                return _operator(node.func, of(caller))
            return not frame.f_code.co_name.startswith("__") and _tensor(node, of(caller))
    return False


def _operator(function: Any, scopes: Sequence[Any]) -> bool:
    try:
        found = held(function, scopes)
    except Unknown:
        if not isinstance(function, ast.Attribute) or not _tensor(function.value, scopes):
            return False
        found = getattr(_tensor_class(), function.attr, None)
    if isinstance(found, types.BuiltinFunctionType):
        return str(getattr(found, "__module__", "")).partition(".")[0] == "torch"
    return isinstance(found, types.MethodDescriptorType) and found.__objclass__.__module__ == "torch._C"


def _tensor(node: Any, scopes: Sequence[Any]) -> bool:
    """Whether an expression gives a tensor, as far as that is known."""
    if isinstance(node, ast.Call):
        return _operator(node.func, scopes)
    if isinstance(node, ast.BinOp):
        return _tensor(node.left, scopes) or _tensor(node.right, scopes)
    if isinstance(node, ast.UnaryOp):
        return _tensor(node.operand, scopes)
    try:
        return isinstance(held(node, scopes), _tensor_class())
    except Unknown:
        return False


def _tensor_class() -> Any:
    return getattr(sys.modules.get("torch"), "Tensor", ())


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
