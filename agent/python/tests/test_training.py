"""What adapters tell, without any framework: a step that fails, allocators that break, a callback that raises."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List, Tuple

import pytest

from hightide_agent import oom
from hightide_agent.agent import Agent
from hightide_agent.allocators import ALLOCATED, OOMS, PATIENCE, RESERVED
from hightide_agent.tracker import BACKWARD, CHECKPOINT, DATA, FORWARD
from hightide_agent.training import Training
from ring import Ring


class Observed:
    def __init__(self, folder: Path) -> None:
        self.agent = Agent(str(folder))
        self.agent.open()
        self.training = Training(self.agent)

    @property
    def ring(self) -> Ring:
        assert self.agent.channel is not None
        return Ring(Path(self.agent.channel.path))


@pytest.fixture
def observed(tmp_path: Path) -> Observed:
    return Observed(tmp_path)


class Optimizer:
    def __init__(self, fails: bool = False) -> None:
        self.fails = fails

    def step(self) -> None:
        if self.fails:
            raise MemoryError


class Slotted:
    """One to which there can be no weak reference."""

    __slots__ = ()

    def step(self) -> None:
        pass


def test_phases_and_steps(observed: Observed) -> None:
    training = observed.training
    data, forward = training.phase(DATA, lambda: 1), training.phase(FORWARD, lambda x: x + 1)
    backward, save = training.phase(BACKWARD, lambda: None), training.phase(CHECKPOINT, lambda: None)
    step, optimizer = training.step(Optimizer.step), Optimizer()
    for _ in range(2):
        for _ in range(2):
            assert forward(data()) == 2
            backward()
        step(optimizer)
    save()
    micro = ["+data", "-data", "+forward", "-forward", "+backward", "-backward"]
    one = ["+step", *micro, *micro, "+optimizer", "-optimizer", "-step"]
    assert observed.ring.outline() == [*one, "=1", *one, "=2", "+step", "+checkpoint", "-checkpoint"]
    assert [s["micro"] for s in observed.ring.steps] == [2, 2]


def test_a_step_that_fails_is_none_and_blocks_no_other(observed: Observed) -> None:
    step = observed.training.step(Optimizer.step)
    with pytest.raises(MemoryError):
        step(Optimizer(fails=True))
    assert not observed.ring.steps
    other = Optimizer()
    step(other)
    step(other)
    assert [s["step"] for s in observed.ring.steps] == [1, 2]
    assert observed.ring.one("oom")["source"] == "MemoryError"


def test_an_optimizer_without_weak_references(observed: Observed) -> None:
    step, optimizer = observed.training.step(Slotted.step), Slotted()
    for _ in range(100):
        step(optimizer)
    assert [s["step"] for s in observed.ring.steps] == list(range(1, 101))


def test_modules_are_described_once_and_by_name(observed: Observed) -> None:
    class Layer:
        def __init__(self, name: str) -> None:
            self.name = name

        def __call__(self) -> None:
            pass

    call = observed.training.module(Layer.__call__, lambda layer: (layer.name, "Layer", 10 // len(layer.name), 0))
    first, broken = Layer("first"), Layer("")
    for layer in (first, broken, first):
        call(layer)
    del first, layer
    call(Layer("again"))  # perhaps where the first one was
    assert [m["name"] for m in observed.ring.all("modules")[-1]["modules"]] == ["first", "again"]
    assert observed.ring.outline("step") == ["+module1", "-module1"] * 2 + ["+module2", "-module2"]
    assert "ZeroDivisionError" in observed.ring.one("log")["text"]


def test_two_allocators_of_which_one_breaks(observed: Observed) -> None:
    training = observed.training
    training.allocators._pid = training.agent.pid  # its thread is this test
    asked: List[str] = []

    def broken() -> List[Tuple[str, str, int]]:
        asked.append("broken")
        raise OSError("no such device")

    training.allocator("one", lambda: [("a:0", ALLOCATED, 5), ("a:0", RESERVED, 8), ("a:1", ALLOCATED, 2)])
    training.allocator("two", lambda: [("b:0", OOMS, 3)], lambda: (100, -1))
    training.phase(FORWARD, lambda: None)()
    training.allocator("three", broken)
    for _ in range(PATIENCE + 2):
        training.allocators.sample()
    training.phase(FORWARD, lambda: None)()
    ring = observed.ring
    assert asked == ["broken"] * (PATIENCE + 1), "and once at an edge"
    edges = [(e["allocated"], e["reserved"]) for e in ring.edges]
    assert set(edges) == {(107, 8)}, "together"
    assert [(s["framework"], s["device"], s["name"], s["unit"]) for s in ring.all("series")] == [
        ("one", "a:0", ALLOCATED, "bytes"), ("one", "a:0", RESERVED, "bytes"), ("one", "a:1", ALLOCATED, "bytes"),
        ("two", "b:0", OOMS, "count"),
    ]  # fmt: skip
    counters = [r["values"] for r in ring.records if r["kind"] == "counters"]
    assert counters == [[[1, 5], [2, 8], [3, 2], [4, 3]]] * (PATIENCE + 2)
    assert len(ring.all("log")) == 2, "of reading at an interval and at an edge"


def test_a_callback_that_raises_stops_no_other(observed: Observed) -> None:
    def raises(step: int) -> int:
        raise ValueError(step)

    seen: List[int] = []
    observed.training.at_step_end(raises)
    observed.training.at_step_end(seen.append)
    observed.training.step(Optimizer.step)(Optimizer())
    assert seen == [1] and "ValueError" in observed.ring.one("log")["text"]


def test_a_frameworks_own_error(observed: Observed, monkeypatch: Any) -> None:
    class Full(Exception):
        pass

    monkeypatch.setattr(oom, "known", [])
    observed.training.out_of_memory(lambda error: ("mine", "mine:0", 77) if isinstance(error, Full) else None)

    def fails() -> None:
        raise Full("no room")

    with pytest.raises(Full):
        observed.training.phase(FORWARD, fails)()
    told = observed.ring.one("oom")
    assert (told["source"], told["device"], told["bytes"]) == ("mine", "mine:0", 77)
    assert told["function"].endswith("fails")
