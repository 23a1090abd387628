"""What Python's collector of garbage freed, and which cycles held it."""

from __future__ import annotations

import builtins
import gc
import weakref
from types import SimpleNamespace
from typing import Any, Dict, Iterator, List

import pytest

from hightide_agent import collector, resident

NODES = """
import gc, sys, time
class Node:
    def __init__(self, size):
        self.data = bytearray(size)
        self.children = []
    def add(self, child):
        child.parent = self
        self.children.append(child)
def make(size):
    node = Node(size)
    node.add(Node(0))
from hightide_agent import start
while start.watcher._collector is None:  # it is installed behind the start
    time.sleep(0.01)
"""


def test_collections_are_told(observe: Any) -> None:
    ring = observe(
        NODES
        + """
for _ in range(8):
    make(8 << 20)
gc.collect()
"""
    ).main
    told = max(ring.all("collected"), key=lambda record: record["rss_bytes"])
    assert 60 << 20 < told["rss_bytes"] < 70 << 20 and told["count"] >= 16 and told["bytes"] == 0
    assert told["ended_ns"] > told["began_ns"]
    cycle = ring.all("cycle")
    assert not cycle, "nothing was left in cycles at the end"


@pytest.mark.parametrize("off", [False, True])
def test_left_at_the_end(observe: Any, off: bool) -> None:
    """What is left in cycles is named as the program ends, where much was freed before; its own life is not longer."""
    ring = observe(
        NODES
        + "gc.disable()\n" * off
        + """
class Told(Node):
    def __del__(self):
        print("gone", flush=True)
for _ in range(4):
    make(8 << 20)
gc.collect()
for _ in range(3):
    make(8 << 20)
node = Told(0); node.add(Node(0)); del node
"""
    )
    cycle = ring.main.one("cycle")
    assert cycle["class"] == "Node" and cycle["name"] == "Node.children[…].parent" and cycle["line"] == 4
    assert ring.out == "gone\n"
    assert any(fact["key"] == "collector" for fact in ring.main.all("fact")) == off


def test_what_exit_handlers_let_go_of_was_held(observe: Any) -> None:
    """As pyplot's figures: cycles that something held until the program's end waited for no collector."""
    ring = observe(
        NODES
        + """
import atexit
kept = []
atexit.register(kept.clear)
for _ in range(2):
    make(20 << 20)
gc.collect()
while len(kept) < 4:
    node = Node(16 << 20); node.add(Node(0)); kept.append(node)
del node
"""
    ).main
    freed = [record["rss_bytes"] for record in ring.all("collected")]
    assert 36 << 20 < max(freed) < 44 << 20, "only what was garbage while the program ran"
    assert not ring.all("cycle")


def test_nothing_without_cycles(observe: Any) -> None:
    ring = observe(NODES + "for _ in range(8):\n    held = bytearray(8 << 20)\ngc.collect()\n").main
    assert all(record["rss_bytes"] < 1 << 20 for record in ring.all("collected")) and not ring.all("cycle")


@pytest.fixture
def saved() -> Iterator[List[Any]]:
    """Garbage of the test alone."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    known = len(gc.garbage)
    try:
        yield gc.garbage
    finally:
        gc.set_debug(0)
        del gc.garbage[known:]
        gc.enable()


class Owner:
    def __init__(self) -> None:
        self.table: Dict[str, Any] = {"me": self}


def test_a_proxy_in_garbage_whose_object_is_gone(saved: List[Any]) -> None:
    owner = Owner()
    owner.table["seen"] = weakref.proxy(lambda: 0)  # its object is gone at once
    del owner
    gc.collect()
    found = collector.cycle(list(saved))
    assert found is not None and found["name"] == "Owner.table['me']"


def test_a_collection_amid_an_import_imports_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the lock of the import that it interrupts is taken twice, and the import fails with KeyError."""
    told: List[Any] = []
    agent: Any = SimpleNamespace(record=told.append, channel=None, log=lambda *what: told.append(what))
    watched = collector.Collector(agent, lambda: None)
    resident.forget()

    def imported(name: str, *_: Any, **__: Any) -> None:
        raise AssertionError("imported " + name)

    monkeypatch.setattr(builtins, "__import__", imported)
    watched._called("start", {})
    watched._called("stop", {"collected": 1})
    monkeypatch.undo()
    assert [record["type"] for record in told] == ["collected"] and watched._before[0] > 0


def closure() -> None:
    class Watched:
        def __init__(self) -> None:
            self.callback = lambda: self

    Watched()


def test_what_leads_back(saved: List[Any]) -> None:
    Owner()
    gc.collect()
    found = collector.cycle(list(saved))
    assert found is not None and found["name"] == "Owner.table['me']"
    del saved[:]
    gc.set_debug(0)
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    closure()
    gc.collect()
    found = collector.cycle(list(saved))
    assert found is not None and found["name"].endswith("Watched.callback (its closure's self)")


def test_looks_at_young_collections_follow_what_they_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many collections a second are looked at now and then, and each one of all objects still is."""
    now, reads = [10**12], [0]

    def rss() -> int:
        reads[0] += 1
        now[0] += 15_000
        return 1 << 30

    monkeypatch.setattr(collector, "monotonic_ns", lambda: now[0])
    monkeypatch.setattr(collector, "rss", rss)
    agent: Any = SimpleNamespace(record=lambda fields: True, channel=None, log=lambda *what: pytest.fail(str(what)))
    watched = collector.Collector(agent, lambda: None)
    began = now[0]
    for _ in range(10_000):
        for phase in ("start", "stop"):
            watched._called(phase, {"generation": 0, "collected": 1})
        now[0] += 1_000_000
    assert reads[0] > 100 and reads[0] * 15_000 <= (now[0] - began) / collector.SHARE + 200_000
    reads[0] = 0
    for _ in range(100):
        for phase in ("start", "stop"):
            watched._called(phase, {"generation": 2, "collected": 1})
        now[0] += collector.PERIOD_NS
    assert reads[0] == 200
