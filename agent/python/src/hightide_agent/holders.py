"""Containers that keep growing: what holds a leak's bytes, by name and line.

A scan walks what the program's names reach (reach.py) and notes sizes by object number; scans are at steps
ever further apart, and whenever the engine asks. What has grown at a steady rate over SCANS scans and
holds more than SMALL becomes a `holder` record. No object is kept between scans.
"""

from __future__ import annotations

import sys
from collections import deque
from time import thread_time_ns
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

from .agent import Agent

if TYPE_CHECKING:  # most programs are over before the first scan
    from .reach import Found

BUDGET_NS = 15_000_000  # of processor time, of one scan
FIRST_SCAN = 6  # steps; then 10, 16, 26, 42 …: not multiples, so that a saw-tooth does not seem straight
SCAN_FACTOR = 1.6
FREELY = 30  # steps; later scans wait until they are no more than
SHARE = 0.002  # of the thread's processor time, unless the engine asks for one because memory grows
SCANS = 4  # readings that must agree
EVENNESS = 1.3  # largest ratio between the growth rates of successive scans
SMALL = 512  # bytes a step below which growth is not told
MAX_REPORTED = 32
NEWEST = 4  # items whose size stands for all
DEEP = 4  # levels of containers inside an item that are measured


class Tensors:
    """What a scan must know of a framework's tensors.

    Args:
        types: exact types; their subclasses are opened as any other object is.
        storage: (something equal for tensors that share their memory, its bytes) of a tensor; may raise for one
            that has no storage.
    """

    def __init__(self, types: Iterable[type], storage: Callable[[Any], Tuple[Any, int]]) -> None:
        self.types = frozenset(types)
        self.storage = storage

    def has_graph(self, tensor: Any) -> bool:
        """Whether it keeps the graph of a computation alive, for derivatives."""
        return False

    def graph_nodes(self, tensor: Any) -> int:
        """Nodes of that graph; -1 of none, and where there are too many to count."""
        return -1


class _Trail(NamedTuple):
    name: str
    sizes: List[Tuple[int, int]]  # (step, items)


class Holders:
    """The scans of one process."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.tensors: Dict[type, Tensors] = {}
        agent.on_renew.append(self.forget)
        self.forget()

    def know(self, tensors: Tensors) -> None:
        """Know a framework's tensors as such."""
        self.tensors.update(dict.fromkeys(tensors.types, tensors))

    def forget(self) -> None:
        """Begin anew in a forked child."""
        self.trails: Dict[int, _Trail] = {}
        self.next_scan = FIRST_SCAN
        self.reported: Dict[str, float] = {}
        self._asked = 0
        self._spent = 0  # ns of processor time in scans

    def step_ended(self, step: int, per_step: float = 1.0) -> int:
        """Scan, if it is time; when it will be. `per_step`: how many training steps one of these steps stands for."""
        channel = self.agent.channel
        asked = channel.scan_seq() if channel is not None else 0
        if step < self.next_scan and asked == self._asked:
            return self.next_scan
        began = thread_time_ns()
        told = any(self.reported.values())  # what has stopped growing is to be taken back
        if asked == self._asked and step >= FREELY and not told and self._spent > SHARE * began:
            self.next_scan = step + 1 + step // 8  # scans are costly, or steps short
            return self.next_scan
        self._asked = asked
        if step >= self.next_scan:
            self.next_scan = max(int(SCAN_FACTOR * self.next_scan) + 1, step + 1)
        try:
            self.scan(step, sys._getframe(1), per_step)
        except Exception as error:
            self.agent.log("could not look for growing containers", error)
        self._spent += thread_time_ns() - began
        return self.next_scan

    def scan(self, step: int, frame: Any, per_step: float) -> None:
        """Take sizes of all that is in reach; report what has been growing."""
        from .reach import walk

        trails: Dict[int, _Trail] = {}
        changed: List[Tuple[Found, float]] = []
        for found in walk(frame, self.tensors, thread_time_ns() + BUDGET_NS):
            size = self._size(found.thing)
            if size < 0:
                continue
            # A tensor that accumulates is a new object at each step: there the name is the trail.
            key = hash(found.name) if type(found.thing) in self.tensors else id(found.thing)
            trails[key] = trail = self._continued(self.trails.get(key), found.name, step, size)
            rate = steady_rate(trail.sizes)
            if rate > 0:
                changed.append((found, rate))
            elif self.reported.get(found.name, 0) > 0 and all(old == size for _, old in trail.sizes[-2:]):
                changed.append((found, 0.0))  # it was cleared, or has stopped
        for key, trail in self.trails.items():  # what a scan that ran out of time did not come to
            if key not in trails and 4 * trail.sizes[-1][0] >= step:
                trails[key] = trail
        self.trails = trails
        for found, rate in changed:
            self._report(found, rate * per_step, step)

    def _continued(self, old: Optional[_Trail], name: str, step: int, size: int) -> _Trail:
        """The trail with one more reading; a new one where the object is another or has shrunk."""
        if old is None or old.name != name or old.sizes[-1][1] > size:
            return _Trail(name, [(step, size)])
        if old.sizes[-1][0] == step:
            return old
        return _Trail(name, old.sizes[-SCANS:] + [(step, size)])

    def _size(self, thing: Any) -> int:
        tensors = self.tensors.get(type(thing))
        if tensors is not None:
            return tensors.graph_nodes(thing)
        if type(thing) is deque and thing.maxlen is not None:
            return -1  # bounded
        return len(thing)

    def _report(self, found: Found, rate: float, step: int) -> None:
        if len(self.reported) >= MAX_REPORTED and found.name not in self.reported:
            return
        thing = found.thing
        if type(thing) in self.tensors:
            kind, items, contains, held, graph = "autograd graph", self._size(thing), "graph node", 0, True
        else:
            kind, items = type(thing).__name__, len(thing)
            contains, bytes_each, tensor_each, graph = self._newest(thing)
            if rate > 0 and rate * bytes_each < SMALL and not graph:
                return
            held = int(tensor_each * items)
        self.reported[found.name] = rate
        place = self._place(found)
        record: Dict[str, Any] = {
            "type": "holder", "step": step, "kind": kind, "name": found.name, "file": place[0], "line": place[1],
            "function": place[2], "items": items, "items_per_step": round(rate, 4), "contains": contains,
            "graph": graph,
        }  # fmt: skip
        if held:
            record["tensor_bytes"] = held
        self.agent.record(record)

    def _place(self, found: Found) -> Tuple[str, int, str]:
        from . import growth_lines

        owner = found.owner
        files = [owner.file] if owner.file else []
        best = None
        for file in files:
            best = growth_lines.find(file, found.leaf, owner.attribute, owner.inside)
        if (best is None or best.score < 8) and owner.inside is None:
            for file in _user_files():
                for attribute in (owner.attribute, True):
                    place = growth_lines.find(file, found.leaf, attribute)
                    if place is not None and place.score >= 8 and (best is None or place.score > best.score):
                        best = place
        if best is None or (best.score < 8 and owner.inside is not None):
            wider = growth_lines.find(owner.file, found.leaf, owner.attribute)
            best = wider if best is None or (wider is not None and wider.score > best.score) else best
        if best is None:
            return owner.file, owner.inside[0] if owner.inside else 0, owner.function
        return best.file, best.line, best.function

    def _newest(self, thing: Any) -> Tuple[str, float, float, bool]:
        """Type name, bytes and tensor bytes of a typical new item; whether one holds an autograd graph."""
        kind = type(thing)
        if kind is list:
            items = thing[-NEWEST:]
        elif kind is set:
            items = [item for _, item in zip(range(NEWEST), thing)]
        elif hasattr(kind, "values"):
            items = [value for _, value in zip(range(NEWEST), reversed(thing.values()))]
        else:
            items = [thing[-1 - i] for i in range(min(NEWEST, len(thing)))]
        if not items:
            return "", 64.0, 0.0, False
        measure = _Measure(self)
        for item in items:
            measure.add(item, 0)
        n = float(len(items))
        return type(items[0]).__name__, measure.total / n, measure.tensors / n, measure.graph


class _Measure:
    """Adds up what a few items hold, shared storage once, to a small depth."""

    def __init__(self, holders: Holders) -> None:
        from .reach import instance_dict

        self.known = holders.tensors
        self.instance_dict = instance_dict
        numpy = sys.modules.get("numpy")
        self.array = getattr(numpy, "ndarray", None) if numpy is not None else None
        self.total = self.tensors = 0.0
        self.graph = False
        self.seen: set[Any] = set()
        self.visits = 0

    def add(self, thing: Any, depth: int) -> None:
        """Count one object and what is in it."""
        self.visits += 1
        kind = type(thing)
        if id(thing) in self.seen or self.visits > 2000:
            return
        self.seen.add(id(thing))
        tensors = self.known.get(kind)
        if tensors is not None:
            self._tensor(tensors, thing)
            return
        if self.array is not None and kind is self.array:
            base = thing.base if type(thing.base) is self.array else thing
            if ("array", id(base)) not in self.seen:
                self.seen.add(("array", id(base)))
                self.total += base.nbytes
                self.tensors += base.nbytes
            return
        if kind is str or kind is bytes or kind is bytearray:
            self.total += len(thing) + 50
            return
        self.total += 32
        if depth >= DEEP:
            return
        if kind in (list, tuple, set, frozenset):
            for item in list(thing)[:256]:
                self.add(item, depth + 1)
            self.total += 8 * len(thing)
        elif kind is dict:
            for item in list(thing.values())[:256]:
                self.add(item, depth + 1)
            self.total += 64 * len(thing)
        elif kind not in (int, float, bool, type(None), type):
            for value in (self.instance_dict(thing) or {}).copy().values():
                self.add(value, depth + 1)

    def _tensor(self, tensors: Tensors, tensor: Any) -> None:
        self.graph = self.graph or tensors.has_graph(tensor)
        try:
            storage, size = tensors.storage(tensor)
        except Exception:  # it has none
            return
        if ("storage", storage) not in self.seen:
            self.seen.add(("storage", storage))
            self.total += size
            self.tensors += size


def steady_rate(sizes: List[Tuple[int, int]]) -> float:
    """Items a step, if the last SCANS readings (step, items) grew at an even rate; else 0."""
    if len(sizes) < SCANS:
        return 0.0
    last = sizes[-SCANS:]
    rates = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(last, last[1:])]
    if min(rates) <= 0 or max(rates) > EVENNESS * min(rates):
        return 0.0
    return (last[-1][1] - last[0][1]) / (last[-1][0] - last[0][0])


def _user_files() -> List[str]:
    from .places import is_library

    files: List[str] = []
    for module in list(sys.modules.values()):
        file: Optional[Any] = getattr(type(module), "__dict__", None) and vars(module).get("__file__")
        if type(file) is str and file.endswith(".py") and not is_library(file) and file not in files:
            files.append(file)
    return files[:50]
