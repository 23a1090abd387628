"""Which number makes a comparison true, or false: so that both ways of a branch are tried.

    if value < self.best:      the comparison, as uses.py found it; the frame that runs
        ─▶ candidates ─▶ the comparison's value with each ─▶ the first one that gives what is wanted

Only plain arithmetic of numbers is worked out, from what names and attributes hold; nothing of the program is called.
"""

from __future__ import annotations

import ast
import math
import operator
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from .scopes import Unknown, held, of

DEEPEST = 12  # nodes above each other in an expression
LARGEST = 1e30
FUNCTIONS: Dict[str, Callable[..., Any]] = {
    "abs": abs, "min": min, "max": max, "round": round, "float": float, "int": int, "bool": bool, "exp": math.exp,
    "log": math.log, "log2": math.log2, "log10": math.log10, "sqrt": math.sqrt, "ceil": math.ceil, "floor": math.floor,
}  # fmt: skip
ITSELF = frozenset((
    "item", "tolist", "cpu", "numpy", "detach", "float", "double", "mean", "max", "min", "median",
))  # fmt: skip
"""Methods that give the same number, as the mean of numbers that are all the same one."""
HOLDS = frozenset(("tensor", "as_tensor", "array", "asarray", "stack", "cat", "mean", "fmean", "median"))
"""Functions that do."""
ARITHMETIC: Dict[Any, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
COMPARED: Dict[Any, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip


class Test:
    """A comparison that a number stands in."""

    def __init__(
        self, compare: Any, numbers: Set[Any], defined: Dict[str, Any], changes: bool, away: bool, last: Tuple[int, int]
    ) -> None:
        self.compare = compare
        self.numbers = numbers  # the expressions that are the number
        self.defined = defined  # name → the place that set it, and the expression; None: the number itself
        self.changes = changes  # what it is compared with is set anew by the program, as the best loss is
        self.away = away  # it stands in another function than the one that runs
        self.last = last  # up to where a name that is set holds the number here: of a loop's test, the loop's end

    def truth(self, number: float, frame: Any) -> Optional[bool]:
        """What the comparison gives; None: it cannot be worked out."""
        compare = self.compare
        try:
            if any(type(kind) not in COMPARED for kind in compare.ops):
                return None
            sides = [self._value(side, number, frame, 0) for side in (compare.left, *compare.comparators)]
            return all(COMPARED[type(kind)](*pair) for kind, pair in zip(compare.ops, zip(sides, sides[1:])))
        except (Unknown, ArithmeticError, ValueError, TypeError):
            return None

    def find(self, wanted: bool, frame: Any) -> Optional[float]:
        """A number with which it gives what is wanted; None: none was found."""
        for number in self._candidates(frame):
            if self.truth(number, frame) is wanted:
                return number
        return None

    def other(self, frame: Any, usual: float, turn: int) -> Optional[float]:
        """The number of the second run, whose first one took `usual`. A comparison with the best so far is then true
        each time; another one is what it was not. Where the number was not found in the comparison, none is known."""
        if not any(self._left(side) for side in (self.compare.left, *self.compare.comparators)):
            return None
        usually = self.truth(usual, frame)
        if usually is None and self.changes and len(self.compare.ops) == 1:
            larger = isinstance(self.compare.ops[0], (ast.Gt, ast.GtE)) == self._left(self.compare.left)
            return float(turn if larger else -turn)
        return self.find(True if self.changes else not usually, frame) if usually is not None else None

    def _left(self, node: Any) -> bool:
        return any(each in self.numbers or self._named(each) for each in ast.walk(node))

    def _named(self, node: Any) -> bool:
        return isinstance(node, ast.Name) and self.defined.get(node.id, ((math.inf, 0),))[0] <= self.last

    def _candidates(self, frame: Any) -> Iterator[float]:
        yield from (0.0, 1.0, -1.0)
        known: List[float] = []
        for node in ast.walk(self.compare):
            try:
                known.append(float(self._value(node, 0.0, frame, 0)))
            except (Unknown, ArithmeticError, ValueError, TypeError):
                continue
        for each in known:
            if abs(each) < LARGEST:
                yield from (each, each + 1, each - 1, 2 * each)
        inner = sorted(each for each in known if abs(each) < LARGEST)
        yield from ((low + high) / 2 for low, high in zip(inner, inner[1:]))
        for power in (-3, -6, 1, 3, 6, 12, 30):
            yield from (10.0**power, -(10.0**power))

    def _value(self, node: Any, number: float, frame: Any, depth: int) -> Any:
        if depth > DEEPEST:
            raise Unknown
        if node in self.numbers:
            return number
        if isinstance(node, ast.Constant):
            return _number(node.value)
        if isinstance(node, ast.Name):
            if self._named(node):
                given = self.defined[node.id][1]
                return number if given is None else self._value(given, number, frame, depth + 1)
            return _number(self._held(node, frame))
        if isinstance(node, ast.Attribute):
            return _number(self._held(node, frame))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            value = self._value(node.operand, number, frame, depth + 1)
            return -value if isinstance(node.op, ast.USub) else value
        if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            sides = [self._value(side, number, frame, depth + 1) for side in (node.left, node.right)]
            return ARITHMETIC[type(node.op)](*sides)
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if not node.args and isinstance(node.func, ast.Attribute) and name in ITSELF:
                return self._value(node.func.value, number, frame, depth + 1)
            if node.args and name in HOLDS:
                return self._value(node.args[0], number, frame, depth + 1)
            if node.args and not node.keywords and name in FUNCTIONS:
                return FUNCTIONS[name](*[self._value(arg, number, frame, depth + 1) for arg in node.args])
        raise Unknown

    def _held(self, node: Any, frame: Any) -> Any:
        """What a name or an attribute holds, without running anything of the program."""
        return held(node, (frame.f_globals,) if self.away else of(frame))


def place(node: Any) -> Tuple[int, int]:
    """Where something stands in its file."""
    return node.lineno, node.col_offset


def _number(value: Any) -> Any:
    if type(value) in (int, float, bool):
        return value
    raise Unknown
