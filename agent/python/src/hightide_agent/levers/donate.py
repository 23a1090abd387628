"""State that a step's result replaces is given to that result: jax.jit donates these arguments, as donate_argnames.

Which ones the plan says, as an imagined run saw them end while nothing but the assignment of the result ran.
Numbers: as far as XLA's kernels round alike. Costs: nothing.
Refused: where no such function is jitted before the first gradient is taken. A program that reads what was donated is
ended at that line. JAX itself raises an error where another compiled function is given it.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from typing import Any, Callable, Dict, List, Tuple

from ..places import caller

ONE = re.compile(r"(?P<name>.+?)\((?P<names>.*)\) at (?P<file>.+):(?P<line>\d+)")
Key = Tuple[str, str, int]


def install(
    settings: Any,
    watch: Callable[[str, Callable[[Any], None]], None],
    told: Callable[[str], None],
    refuse: Callable[[str], None],
) -> None:
    """For all that is jitted from here on. `refuse` ends the program."""
    from ..xla import donating

    wanted: Dict[Key, List[str]] = {}
    for text in settings.get("arguments", ()):
        found = ONE.fullmatch(text)
        if found is not None:
            key = (found["name"], found["file"], int(found["line"]))
            wanted[key] = [name.strip() for name in found["names"].split(",")]

    def of(code: Any) -> List[str]:
        return wanted.get((code.co_name, os.path.basename(code.co_filename), code.co_firstlineno), [])

    watch("jax._src.pjit", lambda pjit: donating.install(pjit, of, lambda name, all: told(_call(name, all))))
    watch("jax._src.array", lambda array: _read(array.ArrayImpl, refuse))


def missing(settings: Any, did: List[str]) -> str:
    """A function of the plan that is not jitted; empty where there is none."""
    for text in settings.get("arguments", ()):
        if text.partition(" at ")[0].partition("(")[0] not in {one.partition("(")[0] for one in did}:
            return "the program jits no %s" % text
    return ""


def _call(name: str, arguments: List[str]) -> str:
    return "%s(%s)" % (name, ", ".join(arguments))


def _read(kind: Any, refuse: Callable[[str], None]) -> None:
    """An array that was donated is looked at in Python."""
    original = kind._check_if_deleted

    @functools.wraps(original)
    def check(array: Any) -> None:
        if array.is_deleted():
            file, line, _ = caller(sys._getframe(1))
            refuse("an array that was donated or deleted is read at %s:%d" % (os.path.basename(file), line))
        original(array)

    kind._check_if_deleted = check
