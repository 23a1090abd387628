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


def test_the_shapes_of_an_argument_are_told() -> None:
    agent = Agent()
    traces = Traces(agent, "jax")  # type: ignore[arg-type]
    for length in (48, 32, 64, 32):
        arguments = {"w": "float32[9]", "n": "3", "x": "int32[8,%d]" % length, "y": "int32[8]"}
        traces.traced("step", "step", "/home/me/train.py", 7, arguments)
    last = agent.records[-1]
    assert (last["shaped"], last["shapes"], last["shape"]) == ("x", 3, "int32[8,32 to 64]")
    assert last["lengths"] == "32,48,64"
    assert "shapes" not in agent.records[0], "one shape alone"


def test_shapes_that_differ_in_two_dimensions_have_no_lengths() -> None:
    agent = Agent()
    traces = Traces(agent, "tensorflow")  # type: ignore[arg-type]
    for shape in ("(8, 32)", "(8, 48)", "(5, 48)"):
        traces.traced("step", "step", "/home/me/train.py", 7, {"x": "int32" + shape})
    last = agent.records[-1]
    assert (last["shapes"], last["shape"]) == (3, "int32[5 to 8,32 to 48]") and "lengths" not in last


def test_values_and_other_types_are_no_shapes() -> None:
    for texts in (
        ("3", "4"),
        ("int32[8]", "float32[9]"),
        ("int32[8]", "int32[8,8]"),
        ("int32(None, 8)", "int32(4, 8)"),
    ):
        agent = Agent()
        traces = Traces(agent, "jax")  # type: ignore[arg-type]
        for text in texts:
            traces.traced("step", "step", "/home/me/train.py", 7, {"x": text})
        assert "shapes" not in agent.records[-1], texts
