"""Objects that the collector of cycles knows, by their types.

A list of all of them holds what is being made at that moment, too. A tuple that another thread is filling cannot grow
while somebody else refers to it: there `tuple(…)` of the program raises SystemError. So the list lives within one call
in C, in which no other thread runs, and what is picked of it are no tuples.
"""

from __future__ import annotations

import gc
from collections import Counter
from functools import partial
from itertools import chain, compress, starmap, tee
from typing import Any, Callable, Dict, Iterable, Iterator, List, Set


def of_types(types: Iterable[type]) -> List[Any]:
    """Those exactly of some types, none of which is a tuple."""
    wanted = {id(kind) for kind in types}
    return _picked(wanted, id, type)


def with_ids(ids: Set[int]) -> List[Any]:
    """Those whose addresses are given, as far as they are still there."""
    return _picked(ids, id)


def plain_dicts() -> List[Dict[Any, Any]]:
    """Dicts of nothing but numbers, text and the like: the collector does not know them, but what refers to them."""
    referred: List[Any] = _all_of(starmap(gc.get_referents, map(gc.get_objects, (None,))), {id(dict)}, id, type)
    once = {id(thing): thing for thing in referred if not gc.is_tracked(thing)}
    return list(once.values())


def subclasses(base: type) -> List[type]:
    """A class, and all that are made of it; no object is looked at. By address: a metaclass may compare as it likes."""
    found: Dict[int, type] = {}
    new: List[type] = [base]
    while new:
        kind = new.pop()
        if id(kind) not in found:
            found[id(kind)] = kind
            children: List[type] = type.__subclasses__(kind)
            new += children
    return list(found.values())


def types() -> Dict[int, type]:
    """The types of all, by their addresses."""
    kinds: List[type] = _alone(lambda: list(map(type, _all())))
    return dict(zip(map(id, kinds), kinds))


def counts() -> Dict[int, int]:
    """How many there are of each type, by the types' addresses."""
    found: Dict[int, int] = _alone(lambda: Counter(map(id, map(type, _all()))))
    return found


def _all() -> Iterator[Any]:
    """All objects: the list is made at the first one, and is gone after the last."""
    return chain.from_iterable(map(gc.get_objects, (None,)))


def _picked(wanted: Set[int], *key: Callable[[Any], Any]) -> List[Any]:
    """Objects for which the functions, the last one first, give something wanted."""
    return _all_of(map(gc.get_objects, (None,)), wanted, *key)


def _all_of(source: Iterator[List[Any]], wanted: Set[int], *key: Callable[[Any], Any]) -> List[Any]:
    """What is wanted of the only list that a source will make.

    Iterators that hold the list of all objects are in it: that circle would last. So the list is emptied in the end,
    and so is what was picked, which may hold itself.
    """
    lists, others, emptied = tee(source, 3)
    tests: Iterator[Any] = others
    for function in (*reversed(key), wanted.__contains__):
        tests = map(partial(map, function), tests)
    picked = chain.from_iterable(map(compress, lists, tests))
    found: List[Any] = _alone(lambda: list(chain(picked, filter(None, map(list.clear, emptied)))))
    picks = [thing for thing in found if thing is not found]
    found.clear()
    return picks


def _alone(pick: Callable[[], Any]) -> Any:
    """What one call in C picks; a collection in its midst would call finalizers, which are Python."""
    asked = gc.isenabled()
    gc.disable()
    try:
        return pick()
    finally:
        if asked:
            gc.enable()
