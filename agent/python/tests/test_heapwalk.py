"""What no name leads to: all of Python's heap, looked through when memory grows and nothing else was found."""

from __future__ import annotations

import gc
import itertools
import weakref
from typing import Any, Iterator, List

import pytest

from conftest import SOURCE  # noqa: F401  (puts the agent on the path)
from hightide_agent import heapwalk
from hightide_agent.heapwalk import Walk
from hightide_agent.reach import walk


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests left in this process, threads and a million objects, is none of the program's."""
    monkeypatch.setattr(heapwalk, "_others", lambda: False)
    monkeypatch.setattr(heapwalk, "TOO_LONG_NS", 1 << 62)


class Node:
    """One of a chain."""


class Keeper:
    """What holds a list, unknown to all names."""

    def __init__(self) -> None:
        self.kept: List[Any] = []


def looked(turn: Any, turns: int = 5) -> Walk:
    found = Walk()
    for at in range(turns):
        turn(at)
        found.look(10 * at)
    return found


def test_a_container_that_grows_is_found_by_what_holds_it() -> None:
    hidden = [[Keeper()]]
    hidden[0][0].kept.extend(range(100))
    found = looked(lambda at: hidden[0][0].kept.extend([1.5] * 7))
    assert found.complete() and found.grows["entries of a list (float)"] == 0.7
    names = [f.name for f in walk(found.roots(), {}, 1 << 62) if type(f.thing) is list and len(f.thing) == 135]
    assert names[:1] == ["Keeper.kept"]


def test_a_dict_of_plain_values_that_grows() -> None:
    hidden = [[Keeper()]]
    hidden[0][0].kept = {number: b"" for number in range(100)}  # type: ignore[assignment]
    at = itertools.count(100)
    found = looked(lambda _: [hidden[0][0].kept.__setitem__(next(at), b"") for _ in range(7)])
    assert found.grows["entries of a dict (bytes)"] == 0.7
    names = [f.name for f in walk(found.roots(), {}, 1 << 62) if type(f.thing) is dict and len(f.thing) == 135]
    assert names[:1] == ["Keeper.kept"]


def test_a_generator_that_a_loop_holds_is_a_root_at_once() -> None:
    def batches() -> Iterator[int]:
        seen = [0] * 77
        while True:
            yield len(seen)

    for _ in batches():
        found = looked(lambda at: None, 1)
        named = [f.name for f in walk(found.roots(), {}, 1 << 62) if type(f.thing) is list and len(f.thing) == 77]
        assert named == ["seen"]
        break


def test_objects_of_a_type_that_become_more() -> None:
    chain: List[Any] = [None]

    def turn(at: int) -> None:
        for _ in range(20):
            node = Node()
            node.before, chain[0] = chain[0], node  # type: ignore[attr-defined]

    assert looked(turn).grows["objects of type Node"] == 2.0
    ones, _others = itertools.tee(itertools.count())

    def teed(at: int) -> None:
        for _ in range(40):
            next(ones)

    assert any("_tee_dataobject" in what for what in looked(teed, 9).grows)


def test_steady_programs_and_our_own_books_grow_nothing() -> None:
    gc.collect()
    assert looked(lambda at: [Node() for _ in range(50)], 8).grows == {}


def test_nothing_lives_longer_for_being_looked_at() -> None:
    thing, keeper = Node(), Keeper()
    gone = weakref.ref(keeper)
    keeper.kept.extend([thing] * 100)
    found = looked(keeper.kept.append)
    assert gone in found._roots
    del keeper, thing
    assert gone() is None and "Keeper" not in [f.name for f in found.roots()]
