"""The source of what runs: parsed files, and the function and the expression that an instruction is of."""

from __future__ import annotations

import ast
import linecache
import os
import stat
import sys
from typing import Any, Dict, Iterator, List, Optional, Tuple

TREES = 8  # parsed files kept
LONGEST = 30_000  # lines of a file
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

_trees: Dict[str, Any] = {}


def position(code: Any, lasti: int, line: int) -> Tuple[int, int, int, int]:
    """Lines and columns of the instruction that runs; the columns are -1 where Python does not know them."""
    if hasattr(code, "co_positions"):
        for number, where in enumerate(code.co_positions()):
            if number == lasti // 2:
                first, last, begin, end = where
                if first is not None and begin is not None:
                    return first, begin, last or first, end if end is not None else -1
                break
    return line, -1, line, -1


def function_of(code: Any) -> Optional[Any]:
    tree = tree_of(code.co_filename)
    if tree is None:
        return None
    if code.co_name == "<module>":
        return tree
    best = None
    for node in ast.walk(tree):
        if not isinstance(node, FUNCTIONS):
            continue
        if _first(node) == code.co_firstlineno and getattr(node, "name", "<lambda>") == code.co_name:
            best = node
    return best if best is not None else tree if code.co_name.startswith("<") else None


def _first(node: Any) -> int:
    lines = [d.lineno for d in getattr(node, "decorator_list", [])]
    return int(min([*lines, node.lineno]))


def tree_of(path: str) -> Optional[Any]:
    if path not in _trees:
        lines = linecache.getlines(path) or _given(path)
        tree = None
        if lines and len(lines) <= LONGEST:
            try:
                tree = ast.parse("".join(lines))
            except (SyntaxError, ValueError, RecursionError):
                tree = None
        while len(_trees) >= TREES:
            del _trees[next(iter(_trees))]
        _trees[path] = tree
    return _trees[path]


def _given(path: str) -> List[str]:
    """The lines of a program that has no file: of python -c, or of standard input where that is a file."""
    arguments = getattr(sys, "orig_argv", [])
    if path == "<string>" and "-c" in arguments[1:-1]:
        return str(arguments[arguments.index("-c", 1) + 1]).splitlines(True)
    try:
        if path == "<stdin>" and stat.S_ISREG(os.fstat(0).st_mode):
            with open("/proc/self/fd/0", encoding="utf-8") as file:
                return file.readlines()
    except (OSError, ValueError):
        pass
    return []


def text_of(node: Any) -> str:
    """A name or an attribute as it is written; what else it may be, in some form that tells it apart."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return text_of(node.value) + "." + node.attr
    return ast.dump(node)


def parts(function: Any) -> Iterator[Any]:
    """The nodes of a function with those within it; of a module those that are in no function."""
    if not isinstance(function, ast.Module):
        yield from ast.walk(function)
        return
    pending: List[Any] = [function]
    while pending:
        node = pending.pop(0)
        yield node
        if not isinstance(node, FUNCTIONS):
            pending.extend(ast.iter_child_nodes(node))


def is_parameter(name: str, function: Any) -> bool:
    arguments = function.args
    given = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
    return any(each is not None and each.arg == name for each in given)


def local(name: str, function: Any) -> bool:
    """Whether a name is the function's own, and not the module's."""
    if isinstance(function, ast.Module):
        return False
    stored = is_parameter(name, function)
    for node in ast.walk(function):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return False
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            stored = True
    return stored
