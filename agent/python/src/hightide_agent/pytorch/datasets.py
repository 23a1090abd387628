"""What of a dataset is many Python objects, told before DataLoader forks its workers.

A forked worker shares its parent's pages until one of both writes to them. Python writes a reference count into each
object that is looked at, so reading a list of strings copies it, page by page, into each worker. NumPy arrays, tensors
and bytes are one object each and stay shared.
"""

from __future__ import annotations

import linecache
import re
import sys
from collections import OrderedDict, defaultdict, deque
from itertools import islice
from types import FunctionType, MethodType, ModuleType
from typing import Any, Iterator, List, Optional, Tuple

from ..agent import Agent

LEAST = 20_000  # objects worth a word
MOST_LOOKED = 300  # objects that are looked into
DEEPEST = 4
SAMPLE = 64  # items that stand for all
CONTAINERS = (list, tuple, dict, set, deque, OrderedDict, defaultdict)
_told: List[str] = []  # names


def tell(agent: Agent, loader: Any) -> None:
    """Record the container of the loader's dataset that holds most objects, if it holds many. Never raises."""
    try:
        if getattr(loader.multiprocessing_context or _default(), "_name", "fork") not in ("fork", None):
            return  # workers get copies of their own
        dataset = loader.dataset
        best: Optional[Tuple[int, str, Any, Any]] = None
        for name, owner, thing in _within(dataset):
            objects = _objects(thing)
            if objects >= LEAST and (best is None or objects > best[0]):
                best = objects, name, owner, thing
        if best is not None and best[1] not in _told:
            _told.append(best[1])
            agent.record(_record(*best))
    except Exception as error:
        agent.log("could not look at a dataset", error)


def _default() -> Any:
    import multiprocessing

    return multiprocessing.get_context()


def _within(dataset: Any) -> Iterator[Tuple[str, Any, Any]]:
    """(name, owner, container) of what the dataset and the datasets in it hold as attributes."""
    seen, left = {id(dataset)}, [(type(dataset).__name__, dataset, 0)]
    if isinstance(dataset, CONTAINERS):
        yield "the dataset", None, dataset
    while left and len(seen) < MOST_LOOKED:
        name, owner, depth = left.pop(0)
        attributes = getattr(owner, "__dict__", None)
        items = list(attributes.items()) if type(attributes) is dict else []
        if isinstance(owner, (list, tuple)):  # of datasets
            items = [("[%d]" % i, item) for i, item in enumerate(owner[:16])]
        for key, value in items:
            if id(value) in seen or isinstance(value, (ModuleType, FunctionType, MethodType, type)):
                continue
            seen.add(id(value))
            inner = name + key if key.startswith("[") else "%s.%s" % (name, key)
            if isinstance(value, CONTAINERS):
                yield inner, owner, value
            looked = hasattr(value, "__dict__") or (isinstance(value, (list, tuple)) and len(value) <= 16)
            if depth < DEEPEST and looked:
                left.append((inner, value, depth + 1))


def _sample(thing: Any) -> List[Any]:
    size = len(thing)
    if isinstance(thing, (list, tuple)):
        return [thing[i * size // SAMPLE] for i in range(SAMPLE)] if size > SAMPLE else list(thing)
    if isinstance(thing, dict):
        return [item for pair in islice(thing.items(), SAMPLE) for item in pair]
    return list(islice(thing, SAMPLE))


def _objects(thing: Any) -> int:
    """How many Python objects it holds, two levels deep; small numbers and what is shared by all count for none."""
    size = len(thing) * (2 if isinstance(thing, dict) else 1)
    if not size:
        return 0
    sample = _sample(thing)
    own = len({id(item) for item in sample if item is not None and not isinstance(item, bool)})
    inner = sum(len(item) for item in sample if isinstance(item, CONTAINERS))
    return size * (own + inner) // len(sample)


def _bytes(thing: Any) -> int:
    """What it takes with its items, two levels deep, from a sample of them."""
    sample = _sample(thing)
    each = 0
    for item in sample:
        each += sys.getsizeof(item, 0)
        if isinstance(item, CONTAINERS):
            each += sum(sys.getsizeof(part, 0) for part in islice(item, SAMPLE))
    count = len(thing) * (2 if isinstance(thing, dict) else 1)
    return sys.getsizeof(thing) + each * count // max(len(sample), 1)


def _record(objects: int, name: str, owner: Any, thing: Any) -> Any:
    items = _sample(thing)
    kinds = [type(item).__name__ for item in (items[1::2] if isinstance(thing, dict) else items)]
    record = {"type": "dataset", "name": name, "kind": type(thing).__name__, "items": len(thing),
              "contains": max(sorted(set(kinds)), key=kinds.count), "bytes": _bytes(thing)}  # fmt: skip
    place = _assigned(owner, name.rpartition(".")[2])
    if place is not None:
        record["file"], record["line"] = place
    return record


def _assigned(owner: Any, attribute: str) -> Optional[Tuple[str, int]]:
    """The line of the owner's __init__ that sets the attribute."""
    code = getattr(getattr(type(owner), "__init__", None), "__code__", None)
    if code is None:
        return None
    wanted = re.compile(r"\bself\.%s\b\s*(:[^=]+)?=[^=]" % re.escape(attribute))
    lines = linecache.getlines(code.co_filename)
    for number in range(code.co_firstlineno, min(code.co_firstlineno + 200, len(lines)) + 1):
        if wanted.search(lines[number - 1]):
            return code.co_filename, number
    return None
