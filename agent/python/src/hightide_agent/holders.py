"""Containers that keep growing: what holds a leak's bytes, by name and line.

A scan walks what the program's names reach (reach.py) and notes sizes by object number; scans are at steps
ever further apart, and whenever the engine asks. What has grown at a steady rate over SCANS scans and
holds more than SMALL becomes a `holder` record. No object is kept between scans.
"""

from __future__ import annotations

import gc
import sys
from collections import OrderedDict, defaultdict, deque
from itertools import islice
from time import thread_time_ns
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

from . import sizes
from .agent import Agent
from .places import is_library, without_file
from .sizes import Reading

if TYPE_CHECKING:  # most programs are over before the first scan
    from . import growth_lines
    from .measure import Measure
    from .reach import Found

BUDGET_NS = 15_000_000  # of processor time, of one scan
FIRST_SCAN = 6  # steps; then 10, 16, 26, 42 …: not multiples, so that a saw-tooth does not seem straight
SCAN_FACTOR = 1.6
FREELY = 30  # steps; later scans wait until they are no more than
SHARE = 0.002  # of the thread's processor time, or where the engine asks for one because memory grows
SHARE_ASKED = 0.01
SCANS = 4  # readings that must agree
EVENNESS = 1.3  # largest ratio between the growth rates of successive scans
UNEVEN = 3.0  # the same by the clock, since turns of a program are not steps; and of the halves of
KEPT = 8  # readings, where a container grows now and then
SMALL = 512  # bytes a step below which growth is not told
SMALL_MINUTE = 1 << 20  # and a minute
MAX_REPORTED = 32
MAX_TRAILS = 20_000
NEWEST = 4  # items whose size stands for all


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

    def made_by(self, tensor: Any) -> str:
        """The operation that made it, as the node of the graph is called."""
        return ""

    def saved(self, tensor: Any, deadline_ns: int) -> Optional[Dict[Any, int]]:
        """Bytes of each living storage that its graph saved for derivatives, parameters left out; None: not known."""
        return None

    def extent(self, tensor: Any) -> Tuple[int, int, int]:
        """Its elements, their bytes, and the bytes of its storage, which are more where it is a view. May raise."""
        raise NotImplementedError

    def graph_nodes(self, tensor: Any) -> int:
        """Nodes of that graph; -1 of none, and where there are too many to count."""
        return -1

    def attached(self, tensor: Any) -> List[Tuple[str, Any]]:
        """What else hangs on it and may grow, each with its name."""
        return []


class _Trail(NamedTuple):
    name: str
    sizes: List[Tuple[int, int]]  # (step or ns, items)


class _Named:
    """What one scan found under one name: an attribute is there once for each object of its class."""

    def __init__(self, lately: int) -> None:
        self.rate = 0.0  # of all that grow, together
        self.items = 0  # in them, else in the last one
        self.rises = False  # in the last scans, as many as
        self._lately = lately
        self.sample: Any = None  # (found, reading) of the one that grows fastest, else of the last
        self._fastest = 0.0

    def add(self, found: Found, reading: Reading, rate: float, trail: _Trail) -> None:
        """One more of the name."""
        self.rises = self.rises or trail.sizes[-1][1] > trail.sizes[max(-1 - self._lately, -len(trail.sizes))][1]
        if rate <= 0 < self.rate:
            return
        self.items = reading.items + (self.items if self.rate > 0 else 0)
        self.rate += rate
        if rate >= self._fastest:
            self.sample, self._fastest = (found, reading), rate


class Holders:
    """The scans of one process."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.tensors: Dict[type, Tensors] = {}
        self.over_time = False  # scans are by the clock
        agent.on_renew.append(self.forget)
        self.forget()

    def know(self, tensors: Tensors) -> None:
        """Know a framework's tensors as such."""
        self.tensors.update(dict.fromkeys(tensors.types, tensors))

    def forget(self) -> None:
        """Begin anew in a forked child."""
        self.trails: Dict[Any, _Trail] = {}
        self.next_scan = FIRST_SCAN
        self.scans = 0
        self.reported: Dict[Tuple[str, str], float] = {}  # by name and kind
        self._descriptions: Dict[Tuple[str, str], Dict[str, Any]] = {}
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
        if asked != self._asked and step < self.next_scan and self._spent > SHARE_ASKED * began:
            return self.next_scan  # a later step will do
        self._asked = asked
        if step >= self.next_scan:
            self.next_scan = max(int(SCAN_FACTOR * self.next_scan) + 1, step + 1)
        try:
            self.scan(step, [sys._getframe(1)], per_step)
        except Exception as error:
            self.agent.log("could not look for growing containers", error)
        self._spent += thread_time_ns() - began
        return self.next_scan

    def scan(self, at: int, frames: Iterable[Any], per_unit: float) -> None:
        """Take sizes of all that is in reach of threads; report what has been growing.

        Args:
            at: the step, or the time in ns.
            per_unit: what rates are told by, in steps or ns.
        """
        from .reach import walk

        trails: Dict[Any, _Trail] = {}
        named: Dict[Tuple[str, str], _Named] = {}
        deadline = thread_time_ns() + BUDGET_NS
        for found in walk(frames, self.tensors, deadline):
            for reading in self._readings(found):
                # What is replaced by something larger is a new object each time: there the name is the trail.
                key = (reading.kind, hash(found.name) if reading.replaced else id(found.thing))
                trails[key] = trail = self._continued(self.trails.get(key), found.name, at, reading.items)
                rate = steady_rate(trail.sizes, UNEVEN if self.over_time else EVENNESS)
                name = named.setdefault((found.name, reading.kind), _Named(SCANS - 1 if self.over_time else SCANS - 2))
                name.add(found, reading, rate, trail)
        in_time = thread_time_ns() < deadline
        for key, trail in self.trails.items():  # what a scan that ran out of time did not come to
            if key not in trails and not in_time and len(trails) < MAX_TRAILS and 4 * trail.sizes[-1][0] >= at:
                trails[key] = trail
        self.trails = trails
        self.scans += 1
        if self.scans == SCANS:
            self.agent.fact("scans", "enough to see a container grow")
        self._tell(named, per_unit, at, in_time)

    def _tell(self, named: Dict[Tuple[str, str], _Named], per_unit: float, at: int, in_time: bool) -> None:
        """Take back what has stopped, and report what grows, fastest first, within another BUDGET_NS."""
        deadline = thread_time_ns() + BUDGET_NS
        for told, name in sorted(named.items(), key=lambda item: (item[1].rate > 0, -item[1].rate)):
            stopped = self.reported.get(told, 0) > 0 and in_time and not name.rises
            if name.rate > 0 or stopped:
                self._report(name, name.rate * per_unit, at)
            if thread_time_ns() > deadline:
                return

    def _continued(self, old: Optional[_Trail], name: str, at: int, size: int) -> _Trail:
        """The trail with one more reading; a new one where the object is another or has shrunk."""
        if old is None or old.name != name or old.sizes[-1][1] > size:
            return _Trail(name, [(at, size)])
        if old.sizes[-1][0] == at:
            return old
        return _Trail(name, old.sizes[1 - KEPT :] + [(at, size)])

    def _readings(self, found: Found) -> List[Reading]:
        thing = found.thing
        tensors = self.tensors.get(type(thing))
        if tensors is not None:
            nodes = tensors.graph_nodes(thing)
            if nodes >= 0:
                return [Reading("autograd graph", nodes, "graph node", True)]
            try:
                return [Reading("array", tensors.storage(thing)[1], "byte", True)]
            except Exception:  # it has none
                return []
        if type(thing) in (list, dict, set, deque, OrderedDict, defaultdict):
            if type(thing) is deque and thing.maxlen is not None:
                return []  # bounded
            return [Reading(found.kind or type(thing).__name__, len(thing), "")]
        return sizes.readings(thing)

    def _report(self, name: _Named, rate: float, at: int) -> None:
        found, reading = name.sample
        told = (found.name, reading.kind)
        if len(self.reported) >= MAX_REPORTED and told not in self.reported:
            return
        place = self._place(found, reading)
        if reading.replaced and (place is None or not place.again):
            return  # what takes its place may be larger for any reason: longer sequences
        kind, contains, held, graph = reading.kind, reading.contains, 0, reading.kind == "autograd graph"
        more: Dict[str, Any] = {}
        if kind == "array":
            held = name.items
        elif not reading.replaced:
            try:
                items = _newest_items(found.thing)
                contains = contains or (type(items[0]).__name__ if items else "")
                measure = self._measured(items)
            except (RuntimeError, IndexError):  # another thread changes it
                return
            more = self._described(told, items)
            graph, each = measure.graph, reading.bytes / max(reading.items, 1)
            unknown = measure.opaque or (measure.empty() and not reading.bytes)  # how large an item is
            small = rate * max(measure.total(), each) < self.small()
            if rate > 0 and small and not (graph or unknown or found.kind):
                return
            held = 0 if small and unknown else int(max(measure.data(), each) * name.items)
        if found.leaf.endswith("_hooks"):
            kind = "hooks"
        self.reported[told] = rate
        record: Dict[str, Any] = {
            "type": "holder", "step": 0 if self.over_time else at, "kind": kind, "name": found.name,
            "items": name.items, "contains": contains, "graph": graph,
        }  # fmt: skip
        record["items_per_minute" if self.over_time else "items_per_step"] = round(rate, 4)
        if place is not None:
            record.update(file=place.file, line=place.line, function=place.function)
        if held:
            record["tensor_bytes"] = held
        record.update(more)
        self.agent.record(record)

    def small(self) -> int:
        """Bytes per step, or minute, below which growth is not told."""
        return SMALL_MINUTE if self.over_time else SMALL

    def _place(self, found: Found, reading: Reading) -> Optional[growth_lines.Place]:
        """The line that makes it grow; None where it was not found."""
        from . import growth_lines

        owner = found.owner
        files = _user_files()
        known = owner.file and (not is_library(owner.file) or owner.file in files)
        own = [owner.file] if known else []
        files = own + [file for file in files if file not in own]
        if reading.contains in ("result", "program", "graph"):  # of a function
            return next(filter(None, (growth_lines.defined(file, found.leaf) for file in files)), None)
        called = next(filter(None, (growth_lines.called(file, found.leaf) for file in files)), None)
        if called is not None and (owner.attribute or found.kind):
            return called
        best = growth_lines.find(own[0], found.leaf, owner.attribute, owner.inside) if own else None
        if (best is None or best.score < 8) and owner.inside is None:
            for file in files:
                for attribute in (owner.attribute, True):
                    place = growth_lines.find(file, found.leaf, attribute)
                    if place is not None and place.score >= 8 and (best is None or place.score > best.score):
                        best = place
        if own and (best is None or (best.score < 8 and owner.inside is not None)):
            wider = growth_lines.find(own[0], found.leaf, owner.attribute)
            best = wider if best is None or (wider is not None and wider.score > best.score) else best
        return best

    def _measured(self, items: List[Any]) -> Measure:
        from .measure import Measure

        measure = Measure(self.tensors)
        for item in items:
            measure.add(item)
        return measure

    def _described(self, told: Tuple[str, str], items: List[Any]) -> Dict[str, Any]:
        """What an item is, as it was when the container was first told: that may be costly, and seldom changes.

        The newest may be in use: its graph is freed when backward is done.
        """
        known = self._descriptions.get(told)
        if known is None:
            from .kept import described

            known = self._descriptions[told] = described(items[1:] or items, self.tensors, thread_time_ns() + BUDGET_NS)
        return known


def _newest_items(thing: Any) -> List[Any]:
    kind = type(thing)
    if kind is list or kind is deque:
        return [thing[-1 - i] for i in range(min(NEWEST, len(thing)))]
    if kind is set:
        return list(islice(thing, NEWEST))
    if isinstance(thing, dict):
        return [value for value in islice(reversed(dict.values(thing)), NEWEST)]
    if kind.__name__ == "_lru_cache_wrapper":
        for table in gc.get_referents(thing):
            if type(table) is dict and table:
                return list(islice(reversed(table.items()), NEWEST))
    return []


def steady_rate(sizes: List[Tuple[int, int]], evenness: float = EVENNESS) -> float:
    """Items a step (or ns), if the last SCANS readings (step, items) grew evenly, or all as a whole; else 0."""
    if len(sizes) < SCANS:
        return 0.0
    last = sizes[-SCANS:]
    rates = [_rate(a, b) for a, b in zip(last, last[1:])]
    if min(rates) > 0 and max(rates) <= evenness * min(rates):
        return _rate(last[0], last[-1])
    return _uneven_rate(sizes)


def _uneven_rate(sizes: List[Tuple[int, int]]) -> float:
    """The rate of what grows now and then, as once an epoch: SCANS - 1 rises, both halves about as fast; else 0."""
    if sum(b[1] > a[1] for a, b in zip(sizes, sizes[1:])) < SCANS - 1:
        return 0.0
    middle = sizes[len(sizes) // 2]
    slow, fast = sorted((_rate(sizes[0], middle), _rate(middle, sizes[-1])))
    return _rate(sizes[0], sizes[-1]) if fast <= UNEVEN * slow else 0.0


def _rate(first: Tuple[int, int], last: Tuple[int, int]) -> float:
    return (last[1] - first[1]) / (last[0] - first[0])


def _user_files() -> List[str]:
    from . import growth_lines
    from .reach import copied

    files: List[str] = []
    for _, module in copied(sys.modules):
        file: Optional[Any] = getattr(type(module), "__dict__", None) and vars(module).get("__file__")
        if type(file) is str and file.endswith(".py") and not is_library(file) and file not in files:
            files.append(file)
    if without_file(getattr(sys.modules.get("__main__"), "__dict__", None)):
        files = growth_lines.without_file() + files
    return files[:50]
