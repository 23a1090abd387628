"""What an item of a container is: the arrays in it, each with the expression that leads to it from the item.

    {"loss": Tensor, "rows": [Tensor]}  ─▶  ['loss'], ['rows'][0]

Only containers and instance variables are opened, and nothing of the program is called.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Set, Tuple

from . import sizes
from .insides import instance_variables

if TYPE_CHECKING:
    from .tensors import Tensors

MOST = 4  # parts of an item that are told, those that keep most
DEEP = 8  # levels inside it
VISITS = 500  # objects of it that are opened
WIDE = 32  # entries of each level
_DICTS = (dict, OrderedDict, defaultdict)


def described(items: List[Any], tensors: Mapping[type, Tensors], deadline_ns: int) -> Dict[str, Any]:
    """What the first of some items is: `parts`, and `saved_bytes` where known, as in docs/formats/channel.md.

    Saved tensors that the second item's graph holds, too, are not counted. The deadline is in processor time.
    """
    mine = list(_arrays(items[0], "", 0, set(), tensors)) if items else []
    parts = [part for path, thing in mine for part in _part(path, thing, tensors)]
    record: Dict[str, Any] = {}
    if parts:
        record["parts"] = sorted(parts, key=lambda part: -int(part["storage_bytes"]))[:MOST]
    if any("grad_fn" in part for part in parts):
        others = list(_arrays(items[1], "", 0, set(), tensors)) if len(items) > 1 else []
        saved, shared = (_saved([thing for _, thing in some], tensors, deadline_ns) for some in (mine, others))
        if saved is not None and shared is not None:
            record["saved_bytes"] = sum(size for storage, size in saved.items() if storage not in shared)
    return record


def _saved(things: List[Any], tensors: Mapping[type, Tensors], deadline_ns: int) -> Optional[Dict[Any, int]]:
    alive: Dict[Any, int] = {}
    for thing in things:
        of = tensors.get(type(thing))
        if of is not None and of.has_graph(thing):
            saved = of.saved(thing, deadline_ns)
            if saved is None:
                return None
            alive.update(saved)
    return alive


def _arrays(thing: Any, path: str, depth: int, seen: Set[int], tensors: Any) -> Iterator[Tuple[str, Any]]:
    kind = type(thing)
    if id(thing) in seen:
        return
    if len(seen) >= VISITS:
        return
    seen.add(id(thing))
    if kind in tensors or sizes.is_array(kind):
        yield path, thing
        for beside in tensors[kind].beside(thing) if kind in tensors else ():
            yield path + ".grad", beside
    elif depth < DEEP:
        for step, inner in _entries(thing, kind):
            yield from _arrays(inner, path + step, depth + 1, seen, tensors)


def _entries(thing: Any, kind: type) -> List[Tuple[str, Any]]:
    if kind in (list, tuple, deque):
        return [("[%d]" % i, thing[i]) for i in range(min(len(thing), WIDE))]
    if isinstance(thing, tuple):  # a named one
        names = getattr(kind, "_fields", ())
        return [("." + str(name), value) for name, value in zip(names, tuple.__iter__(thing))]
    if kind in _DICTS:
        keys = [key for key, _ in zip(thing, range(WIDE))]
        return [("[%r]" % (key,) if type(key) in (str, int) else "[…]", thing[key]) for key in keys]
    return [("." + name, value) for name, value in instance_variables(thing)[:WIDE]]


def _part(path: str, thing: Any, tensors: Mapping[type, Tensors]) -> List[Dict[str, Any]]:
    """One array in words of the record; none of something that has no memory of its own."""
    of = tensors.get(type(thing))
    try:
        elements, seen, kept = of.extent(thing) if of is not None else sizes.extent(thing)
        part: Dict[str, Any] = {
            "at": path,
            "type": type(thing).__name__,
            "elements": elements,
            "bytes": seen,
            "storage_bytes": kept,
        }
        if of is not None and of.has_graph(thing):
            part["grad_fn"] = of.made_by(thing)
        return [part]
    except Exception:  # another version of a library, or a tensor without storage
        return []
