"""Objects are picked of all that there are, and the program does not notice."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any, List

from conftest import SOURCE  # noqa: F401  (puts the agent on the path)
from hightide_agent import collected


class Kind:
    """One that nothing else makes."""


def test_what_is_picked() -> None:
    mine = [Kind() for _ in range(5)]
    assert sorted(map(id, collected.of_types([Kind]))) == sorted(map(id, mine))
    assert collected.with_ids({id(mine[2]), id(mine)}) in ([mine[2], mine], [mine, mine[2]])
    assert collected.types()[id(Kind)] is Kind and collected.counts()[id(Kind)] == 5


def test_dicts_that_the_collector_does_not_know() -> None:
    mine: List[Any] = [{number: bytes(8) for number in range(40)}, {"key": 1.5}]
    mine.append(mine[1])
    unknown = [thing for thing in mine if not gc.is_tracked(thing)]  # from Python 3.14 on it knows all
    found = [id(thing) for thing in collected.plain_dicts()]
    assert [found.count(id(thing)) for thing in unknown] == [1] * len(unknown)
    assert not any(map(gc.is_tracked, collected.plain_dicts()))


def test_subclasses() -> None:
    class Odd(type):
        __hash__ = None  # type: ignore[assignment]

    class Base(metaclass=Odd):
        pass

    class One(Base):
        pass

    class Two(Base):
        pass

    class Both(One, Two):
        pass

    assert sorted(kind.__name__ for kind in collected.subclasses(Base)) == ["Base", "Both", "One", "Two"]


def test_nothing_lives_longer() -> None:
    asked = gc.isenabled()
    gc.disable()
    try:
        thing = Kind()
        alive = weakref.ref(thing)
        collected.of_types([list])
        collected.plain_dicts()
        collected.with_ids({1})
        collected.types()
        collected.counts()
        del thing
        assert alive() is None and not gc.isenabled()
    finally:
        if asked:
            gc.enable()


def test_tuples_of_other_threads_can_still_be_made() -> None:
    """A list of all objects, held for a moment in which they run, lets one in a hundred of them fail."""
    failed: List[Any] = []
    made = [0, 0, 0]
    over = threading.Event()

    def make(number: int) -> None:
        while not over.is_set():
            try:
                tuple(i for i in range(300))
            except SystemError as error:
                failed.append(error)
            made[number] += 1

    threads = [threading.Thread(target=make, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    while min(made) < 2000:
        collected.of_types([list, dict])
        collected.plain_dicts()
        collected.with_ids({id(made)})
        collected.types()
        collected.counts()
    over.set()
    for thread in threads:
        thread.join()
    assert not failed
