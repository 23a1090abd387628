"""How many entries a container has at most, where the program says so beside the statement that adds to it.

Also what empties it: x.clear(), x[:] = [], or a new one in its place, x = [].

    del log[:-300]      log = log[-300:]      if len(log) > 300: log.pop(0)      while len(log) >= SIZE: log.popitem()

A bound is told only where its number is known. What takes entries out under another condition is none.
"""

from __future__ import annotations

import ast
import operator
import sys
from types import ModuleType
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from .growth_lines import Sought, fits, grows, is_meant, of_another, path_to
from .insides import bases, copied, instance_dict, own_dict
from .sources import Node, nodes

_EMPTY = frozenset(
    ("list", "dict", "set", "bytearray", "deque", "defaultdict", "OrderedDict", "Counter", "BytesIO", "StringIO")
)
_DROPS = frozenset(("pop", "popleft", "popitem", "remove", "discard", "clear"))
_OPERATORS: Dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
}  # fmt: skip


class Cut(NamedTuple):
    """A statement that keeps it from having more."""

    items: int
    line: int


def cut(file: str, sought: Sought, of: Any) -> Optional[Cut]:
    """The bound that a file gives a container; the largest of several.

    Args:
        of: the object whose attribute it is, or None: where `self.size` is read.
    """
    every = list(nodes(file))
    grown = [at for at in every if grows(at, sought)]
    found = []
    for at in every:
        for number in _limits(at, sought) if is_meant(at, sought, 3) and _beside(at, grown, sought) else ():
            items = _Values(file, every, at, of).number(number)
            if items is not None and items > 0:
                found.append(Cut(items, at.node.lineno))
    return max(found, default=None)


def emptied(file: str, sought: Sought) -> int:
    """The first line of a file that empties it, or puts an empty one in its place later than at first; 0: none does."""
    lines = [at.node.lineno for at in nodes(file) if _empties(at, sought)]
    return min(lines, default=0)


def _empties(at: Node, sought: Sought) -> bool:
    node = at.node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("clear", "truncate"):
        return _fits(node.func.value, sought) and is_meant(at, sought, 3) and not of_another(at, sought)
    targets: List[Any] = []
    if isinstance(node, ast.Assign):
        targets = node.targets if _is_empty(node.value) else []
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target] if _is_empty(node.value) else []
    elif isinstance(node, ast.Delete):
        targets = [target for target in node.targets if _is_all(target)]
    if not any(_fits(t.value if _is_all(t) else t, sought) for t in targets):
        return False
    later = any(_is_all(t) for t in targets) or at.in_loop or _is_later(at, sought)
    return later and is_meant(at, sought, 3) and not of_another(at, sought)


def _is_later(at: Node, sought: Sought) -> bool:
    """Whether an assignment that is in no loop is not the first: that of a local is, each time its function runs."""
    if not at.functions or sought.inside is not None:
        return False
    return at.functions[-1].name not in ("__init__", "__new__", "__post_init__", "__setstate__", "setup")


def _is_empty(value: Any) -> bool:
    """Whether an expression makes something empty."""
    if isinstance(value, ast.Constant):
        return value.value in ("", b"", None)
    if isinstance(value, (ast.List, ast.Set, ast.Tuple)):
        return not value.elts
    if isinstance(value, ast.Dict):
        return not value.keys
    named = getattr(value, "func", None)
    name = getattr(named, "attr", getattr(named, "id", ""))
    return name in _EMPTY and (name in ("deque", "defaultdict") or not (value.args or value.keywords))


def _beside(at: Node, grown: List[Node], sought: Sought) -> bool:
    """Whether it runs where one that adds does, but for tests of the length."""
    for adds in grown:
        more = [test for test in at.tests if test not in adds.tests and not _tested_by(test, sought)]
        if adds.functions == at.functions and not more:
            return True
    return False


def _limits(at: Node, sought: Sought) -> List[Any]:
    """Expressions of the entries that a statement leaves at most; none where it drops nothing, or nobody knows."""
    node = at.node
    if isinstance(node, ast.Assign):
        targets: List[Any] = [t.value if _is_all(t) else t for t in node.targets]  # type: ignore[attr-defined]
        if isinstance(node.value, ast.Subscript) and _fits(node.value.value, sought):
            return _kept(node.value.slice, True) if any(_fits(t, sought) for t in targets) else []
    elif isinstance(node, ast.Delete):
        for target in node.targets:
            if isinstance(target, ast.Subscript) and _fits(target.value, sought):
                return _kept(target.slice, False) or _tested(at, sought)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _DROPS:
        return _tested(at, sought) if _fits(node.func.value, sought) else []
    return []


def _fits(node: Any, sought: Sought) -> bool:
    path = path_to(node, sought)
    return path is not None and fits(path, sought.keys)


def _is_all(node: Any) -> bool:
    """Whether it is x[:]."""
    part = node.slice if isinstance(node, ast.Subscript) else None
    return isinstance(part, ast.Slice) and not (part.lower or part.upper)


def _kept(part: Any, stays: bool) -> List[Any]:
    """n of x[-n:] and x[:n], which stay, or of x[:-n] and x[n:], which go."""
    if not isinstance(part, ast.Slice) or part.step is not None:
        return []
    last, first = (part.lower, part.upper) if stays else (part.upper, part.lower)
    if isinstance(last, ast.UnaryOp) and isinstance(last.op, ast.USub) and first is None:
        return [last.operand]
    return [first] if first is not None and last is None and not isinstance(first, ast.UnaryOp) else []


def _tested(at: Node, sought: Sought) -> List[Any]:
    """n of the `len(x) > n` under which a statement stands."""
    return [number for test in at.tests for number in _tested_by(test, sought)]


def _tested_by(test: Any, sought: Sought) -> List[Any]:
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return []
    left, right, op = test.left, test.comparators[0], test.ops[0]
    if _is_length(left, sought) and isinstance(op, (ast.Gt, ast.GtE, ast.Eq)):
        return [right]
    return [left] if _is_length(right, sought) and isinstance(op, (ast.Lt, ast.LtE, ast.Eq)) else []


def _is_length(node: Any, sought: Sought) -> bool:
    named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"
    return named and len(node.args) == 1 and _fits(node.args[0], sought)


class _Values:
    """What expressions are worth at a statement, as far as that is known without running anything."""

    def __init__(self, file: str, every: List[Node], at: Node, of: Any) -> None:
        self.every = every
        self.functions = at.functions
        self.of = of
        modules = [module for _, module in copied(sys.modules) if type(module) is ModuleType]
        main: Any = sys.modules.get("__main__")
        here = [module for module in modules if module.__dict__.get("__file__") == file] or [main]
        self.globals: Dict[str, Any] = here[0].__dict__

    def number(self, node: Any) -> Optional[int]:
        """A whole number; None where it is not known to be one."""
        value: Any = None
        if isinstance(node, ast.Constant):
            value = node.value
        elif isinstance(node, ast.Name):
            value = self._variable(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            value = self._attribute(node.attr)
        elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            sides = self.number(node.left), self.number(node.right)
            if None not in sides:
                try:
                    value = _OPERATORS[type(node.op)](*sides)
                except ArithmeticError:
                    value = None
        return value if type(value) is int else None

    def _variable(self, name: str) -> Any:
        given: List[Tuple[Any, Any]] = []  # function and value of each assignment
        for at in self.every:
            if isinstance(at.node, ast.Name) and at.node.id == name and isinstance(at.node.ctx, ast.Store):
                given.append((at.functions[-1] if at.functions else None, at.node))
            elif isinstance(at.node, ast.arg) and at.node.arg == name and at.functions:
                given.append((at.functions[-1], at.node))
        if any(function in self.functions for function, _ in given if function is not None):
            return self._constant(name) if len(given) == 1 else None
        return self.globals.get(name)

    def _constant(self, name: str) -> Any:
        for at in self.every:
            if isinstance(at.node, ast.Assign) and any(getattr(t, "id", None) == name for t in at.node.targets):
                return getattr(at.node.value, "value", None) if isinstance(at.node.value, ast.Constant) else None
        return None

    def _attribute(self, name: str) -> Any:
        if self.of is None:
            return None
        own = instance_dict(self.of) or {}
        if name in own:
            return own[name]
        classes = [own_dict(kind) for kind in bases(type(self.of))]
        return next((variables[name] for variables in classes if name in variables), None)
