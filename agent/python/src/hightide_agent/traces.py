"""Functions that a framework traces or compiles again and again: which, how often, and what changed.

    an adapter ─▶ traced(function, file, line, arguments) ─▶ "traced" records

Each time the framework keeps another graph or program. A record is written for the first MOST tracings of a function
and then for each doubling, with the count so far; what is left is told
at the end, with the time of the last.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

from .channel import monotonic_ns
from .masking import mask
from .places import caller, is_library
from .shapes import Shapes

if TYPE_CHECKING:
    from typing import Mapping

    from .agent import Agent

MOST = 16  # tracings of one function that each have a record
FUNCTIONS = 256  # that are followed
reshaped = 0  # how often a function of the program was traced for a new shape of an argument
TEXT = 120  # characters of an argument's description


class _Function:
    __slots__ = ("arguments", "count", "last", "record", "shapes", "told")

    def __init__(self) -> None:
        self.count = self.told = self.last = 0
        self.shapes = Shapes()
        self.arguments: Mapping[str, str] = {}
        self.record: Dict[str, Any] = {}


class Traces:
    """What one framework has traced in this process."""

    def __init__(self, agent: Agent, framework: str) -> None:
        self.agent = agent
        self.framework = framework
        self._functions: Dict[Any, _Function] = {}
        agent.at_end.append(self.end)

    def traced(self, key: Any, name: str, file: str, line: int, arguments: Mapping[str, str], **more: str) -> None:
        """A function was traced, for these arguments. `key` tells it from others of its name; `more`: of its record.

        Functions of a library's own are told together, by the program's line that ran them.
        """
        if is_library(file) and not more:
            by, at, _ = caller(sys._getframe(1))
            if by and not is_library(by):
                key, file, line, arguments = (by, at), by, at, {}
            more = {"library": "yes"}
        function = self._functions.get(key)
        if function is None:
            if len(self._functions) >= FUNCTIONS:
                return
            function = self._functions[key] = _Function()
        changed = _changed(function.arguments, arguments) if function.count else None
        function.count += 1
        function.last = monotonic_ns()
        function.arguments = arguments
        if function.shapes.add(arguments):
            global reshaped
            reshaped += 1
        name = function.record.get("function", name) if "library" in more else name
        function.record = {"type": "traced", "framework": self.framework, "function": name, "file": file,
                           "line": line, **more}  # fmt: skip
        if changed is not None:
            name, before, after = changed
            function.record.update(argument=name, before=mask(before[:TEXT]), after=mask(after[:TEXT]))
        if function.count <= MOST or function.count >= 2 * function.told:
            self._tell(function)

    def _tell(self, function: _Function) -> None:
        function.told = function.count
        of = {"count": function.count, "last_ns": function.last, **function.shapes.told()}
        self.agent.record({**function.record, **of})

    def end(self) -> None:
        """Tell how often each was traced in the end."""
        for function in list(self._functions.values()):
            if function.count > function.told:
                self._tell(function)


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> Optional[Tuple[str, str, str]]:
    """The first argument that differs; None where none is known to."""
    for name, text in after.items():
        if before.get(name, "absent") != text:
            return name, before.get(name, "absent"), text
    for name, text in before.items():
        if name not in after:
            return name, text, "absent"
    return None
