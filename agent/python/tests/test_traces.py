"""Functions that are traced again and again: the program's by themselves, a library's by the line that ran them."""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, List

from conftest import SOURCE  # noqa: F401  (puts the agent on the path)
from hightide_agent.traces import Traces


class Agent:
    def __init__(self) -> None:
        self.at_end: List[Any] = []
        self.records: List[Dict[str, Any]] = []

    def record(self, fields: Dict[str, Any]) -> None:
        self.records.append(fields)


def test_a_librarys_functions_are_told_by_the_programs_line() -> None:
    agent = Agent()
    traces = Traces(agent, "tensorflow")  # type: ignore[arg-type]
    for turn in range(3):
        here = sys._getframe().f_lineno + 2
        for name in ("wrapped_fn", "initializer"):
            traces.traced((name, turn), name, os.__file__, 7, {"x": "float32[%d]" % turn})
    last = agent.records[-1]
    assert (last["function"], last["count"], last["library"]) == ("wrapped_fn", 6, "yes")
    assert (last["file"], last["line"]) == (__file__, here)
    assert "argument" not in last


def test_the_programs_functions_are_told_each() -> None:
    agent = Agent()
    traces = Traces(agent, "tensorflow")  # type: ignore[arg-type]
    for turn in range(3):
        traces.traced("step", "step", "/home/me/train.py", 7, {"x": "float32[%d]" % turn})
    last = agent.records[-1]
    assert (last["function"], last["file"], last["line"], last["count"]) == ("step", "/home/me/train.py", 7, 3)
    assert (last["argument"], last["before"], last["after"]) == ("x", "float32[1]", "float32[2]")
    assert "library" not in last
