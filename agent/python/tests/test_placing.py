"""The statements at which a container grows, and its bounds: from names and source text alone."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any, List, Optional

import pytest

from conftest import SOURCE  # noqa: F401  (puts the agent on the path)
from hightide_agent.bounds import cut
from hightide_agent.growth_lines import Sought, statements

CASES = {
    "two branches": (Sought("kept", False), """
        kept = []
        if rare:
            kept.append(0)  # HERE
        else:
            kept.append(x)  # HERE
        """),
    "another key": (Sought("history", False, keys=("states",)), """
        history = {"loss": [], "states": {}}
        history["loss"].append(loss.item())
        history["states"][step] = x  # HERE
        """),
    "a key that only the program knows": (Sought("history", False, keys=("states",)), """
        history["loss"].append(loss.item())
        history[name].append(x)  # HERE
        """),
    "the outer of two": (Sought("log", False), """
        log[step] = {}  # HERE
        log[step]["x"] = x
        """),
    "new keys of a defaultdict": (Sought("log", False, new_keys=True), """
        log[step].append(x)  # HERE
        """),
    "setdefault": (Sought("log", False, keys=("x",)), """
        log.setdefault("x", []).append(x)  # HERE
        log.setdefault("y", []).append(x)
        """),
    "another function's variable of that name": (Sought("kept", False), """
        kept = []
        def other():
            kept = []
            kept.append(1)
        def keep(x):
            kept.append(x)  # HERE
        """),
    "a local": (Sought("kept", False, inside=(4, "main")), """
        def other(kept):
            kept.append(1)
        def main():
            kept = []
            kept.append(2)  # HERE
            def inner(kept):
                kept.append(3)
        """),
    "handed to a function": (Sought("kept", False), """
        kept = []
        def keep(where, x):
            where.append(x)  # HERE
        def other(where, x):
            where.append(x)
        keep(kept, x)
        other([], x)
        """),
    "its method in a variable": (Sought("kept", False), """
        kept = []
        add = kept.append
        for x in data:
            add(x)  # HERE
        """),
    "an attribute of another class": (Sought("log", True, klass="B"), """
        class A:
            def note(self, x):
                self.log.append(x)
        class B:
            def note(self, x):
                self.log.append(x)  # HERE
        def outside(b, x):
            b.log.append(x)  # HERE
        """),
    "a queue": (Sought("jobs", False, kind="queue"), """
        jobs = queue.Queue()
        jobs.append(1)
        jobs.put(x)  # HERE
        """),
    "an executor": (Sought("pool", False, kind="backlog of executor"), """
        pool.submit(work, x)  # HERE
        pool.shutdown()
        """),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_statements(tmp_path: Path, case: str) -> None:
    sought, text = CASES[case]
    assert found(tmp_path, sought, text) == marked(text)


def found(folder: Path, sought: Sought, text: str) -> List[int]:
    file = folder / "program.py"
    file.write_text(textwrap.dedent(text))
    return [place.line for place in statements(str(file), sought)]


def marked(text: str) -> List[int]:
    return [number for number, line in enumerate(textwrap.dedent(text).splitlines(), 1) if "# HERE" in line]


class Window:
    most = 7

    def __init__(self) -> None:
        self.size = 30


BOUNDS = {
    "the newest stay": (300, "log.append(x)\ndel log[:-300]\n"),
    "sliced anew": (20, "log.append(x)\nlog = log[-20:]\n"),
    "sliced in place": (20, "log.append(x)\nlog[:] = log[-20:]\n"),
    "tested": (5, "log.append(x)\nif len(log) > 5:\n    log.pop(0)\n"),
    "tested the other way round": (5, "log.append(x)\nwhile 5 < len(log):\n    del log[0]\n"),
    "a constant of the module": (4096, "MOST = 1024\nlog.append(x)\nif len(log) >= MOST * 4:\n    log.clear()\n"),
    "of the object": (30, "log.append(x)\nif len(log) > self.size:\n    log.pop(0)\n"),
    "of its class": (7, "log.append(x)\nif len(log) > self.most:\n    log.pop(0)\n"),
    "the largest of two": (9, "log.append(x)\nif len(log) > 5:\n    log.pop()\nif len(log) > 9:\n    log.pop()\n"),
    "another list's": (None, "log.append(x)\ndel other[:-300]\n"),
    "under a condition of its own": (None, "log.append(x)\nif debug:\n    del log[:-300]\n"),
    "in another function": (None, "def trim():\n    del log[:-300]\nlog.append(x)\n"),
    "a number that nobody knows": (None, "log.append(x)\nif len(log) > limit():\n    log.pop(0)\n"),
    "from time to time": (None, "log.append(x)\nif step % 100 == 0:\n    log.clear()\n"),
    "all but the first": (None, "log.append(x)\nlog = log[1:]\n"),
}


@pytest.mark.parametrize("case", BOUNDS)
def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    items, text = BOUNDS[case]
    file = tmp_path / "program.py"
    file.write_text(text)
    monkeypatch.setitem(__import__("sys").modules, "program", module(str(file)))
    least = cut(str(file), Sought("log", False), Window())
    assert (least.items if least else None) == items


def module(file: str, most: Optional[int] = 1024) -> Any:
    import types

    made = types.ModuleType("program")
    made.__file__, made.__dict__["MOST"] = file, most
    return made
