"""Containers that keep growing: what holds a leak's bytes, by name and line.

    roots.py ─▶ reach.py ─▶ sizes by object number ─▶ what grew at a steady rate over SCANS scans
      ─▶ placing.py: its statements ─▶ ran.py: those that run ─▶ a `holder` record

Scans are at steps ever further apart, and whenever the engine asks. No object is kept between scans.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from itertools import islice, zip_longest
from time import process_time_ns, thread_time_ns
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from . import insides, sizes, teeth
from .agent import Agent
from .costs import Costs
from .forks import work
from .insides import container_base, length, named, newest
from .sizes import Reading
from .teeth import Teeth

if TYPE_CHECKING:  # most programs are over before the first scan
    from .costs import Held
    from .growth_lines import Place
    from .heapwalk import Walk
    from .measure import Measure
    from .ran import Window
    from .reach import Found
    from .tensors import Tensors

    Told = Tuple[str, str]  # name and kind

BUDGET_NS = 15_000_000  # of processor time, of one scan
FIRST_SCAN = 6  # steps; then 10, 16, 26, 42 …: not multiples, so that a saw-tooth does not seem straight
SCAN_FACTOR = 1.6
FREELY = 30  # steps; later scans wait until they are no more than
SCANS = 4  # readings that must agree
EVENNESS = 1.3  # largest ratio between the growth rates of successive scans
UNEVEN = 3.0  # the same by the clock, since turns of a program are not steps; and of the halves of
KEPT = 8  # readings, where a container grows now and then
SMALL = 512  # bytes a step below which growth is not told
SMALL_MINUTE = 1 << 20  # and a minute
MAX_REPORTED = 32
MAX_LINES = 8  # that one container may grow at
MAX_TRAILS = 20_000
NEWEST = 4  # items whose size stands for all
LAST = 16  # items that are held against the statements that ran last
WINDOWS = (2, 8, 32)  # steps for which statements are watched, until some were seen to run
LEAST_TOOTH = 1 << 20  # bytes of what is emptied again and again, when it was fullest
LEAST_PART = 0.05  # of the bytes added meanwhile, for a statement to count


class _Trail(NamedTuple):
    name: str
    sizes: List[Tuple[int, int]]  # (step or ns, items)


class _Named:
    """What one scan found under one name: an attribute is there once for each object of its class."""

    def __init__(self, lately: int) -> None:
        self.rate = 0.0  # of all that grow, together
        self.items = 0  # in them, else in the last one
        self.objects = 0
        self.rises = False  # in the last scans, as many as
        self.renewed = False  # it grew by being replaced
        self.short = False  # there are too few readings of it, as an object
        self._lately = lately
        self.largest: Any = (None, None)  # (found, reading)
        self.sample: Any = None  # the same of the one that grows fastest, else of the last
        self._fastest = 0.0
        self.tooth = teeth.NONE

    def add(self, found: Found, reading: Reading, rate: float, trail: _Trail) -> None:
        """One more of the name."""
        self.objects += 1
        self.rises = self.rises or self._rose(trail)
        if self.objects == 1 or reading.items > self.largest[1].items:
            self.largest = (found, reading)
        if rate <= 0 < self.rate:
            return
        self.items = reading.items + (self.items if self.rate > 0 else 0)
        self.rate += rate
        if rate >= self._fastest:
            self.sample, self._fastest = (found, reading), rate

    def renew(self, rate: float, trail: _Trail) -> None:
        """Take in what it grows by as a name."""
        if rate > 0:
            self.renewed, self.rate, self.rises = True, rate, self._rose(trail)
            self.sample, self.items, self.objects = self.largest, self.largest[1].items, 1

    def _rose(self, trail: _Trail) -> bool:
        return trail.sizes[-1][1] > trail.sizes[max(-1 - self._lately, -len(trail.sizes))][1]


class Holders:
    """The scans of one process."""

    def __init__(
        self, agent: Agent, device: Callable[[], Optional[Held]] = lambda: None, over_time: bool = False
    ) -> None:
        self.agent = agent
        self.tensors: Dict[type, Tensors] = {}
        self.over_time = over_time  # scans are by the clock
        self._device = device  # how to ask what devices hold; None: none is used
        agent.on_renew.append(self.forget)
        self.forget()

    def know(self, tensors: Tensors) -> None:
        """Know a framework's tensors as such."""
        self.tensors.update(dict.fromkeys(tensors.types, tensors))

    def forget(self) -> None:
        """Begin anew in a forked child."""
        self.trails: Dict[Any, _Trail] = {}
        self._another = ""  # what was replaced by something larger, of which the source does not say that it is made
        self._unsure = False  # such a thing was told
        self._names: Dict[Told, _Trail] = {}  # of what each name leads to, whichever object that is
        self.next_scan = FIRST_SCAN
        self.scans = 0
        self.reported: Dict[Told, float] = {}
        self._descriptions: Dict[Told, Dict[str, Any]] = {}
        self._places: Dict[Told, List[Place]] = {}  # candidates, from the source
        self._bounds: Dict[Told, Dict[str, Any]] = {}
        self._watched: Dict[Told, int] = {}  # items as a window began
        self._ran: Dict[Told, List[Place]] = {}  # those that were seen to add what is kept
        self._window: Optional[Window] = None
        self._heap: Optional[Walk] = None
        self._windows = self._watched_until = 0
        self._grew: Dict[Told, int] = {}  # items of what the last scan reported
        self._teeth = Teeth()
        self._asked = 0
        self.costs = Costs(self._device, process_time_ns if self.over_time else thread_time_ns)

    def step_ended(self, step: int, per_step: float = 1.0) -> int:
        """Scan, if it is time; when it will be. `per_step`: how many training steps one of these steps stands for."""
        channel = self.agent.channel
        asked = channel.scan_seq() if channel is not None else 0
        watching = self._watched and step >= self._watched_until
        if step < self.next_scan and asked == self._asked and not watching:
            return self._next()
        is_asked = asked != self._asked
        if is_asked:
            self.costs.asked()
        if not watching and self._too_costly(step, is_asked):
            return self._next()
        self._asked = asked
        if step >= self.next_scan:
            self.next_scan = max(int(SCAN_FACTOR * self.next_scan) + 1, step + 1)
        try:
            frame = sys._getframe(1)
            with work:
                if watching and self._window is not None:
                    self._window.end(frame)
                self.scan(step, [frame], per_step, is_asked)
                self._watch(step, frame)
        except Exception as error:
            self.agent.log("could not look for growing containers", error)
        return self._next()

    def _next(self) -> int:
        return min(self.next_scan, self._watched_until) if self._watched else self.next_scan

    def _too_costly(self, step: int, asked: bool) -> bool:
        told = any(self.reported.values())  # what has stopped growing is to be taken back
        due = step >= self.next_scan
        if due and (step < FREELY or told or (asked and self.costs.rises())):
            return False
        if self.costs.affords_scan(asked):
            return False
        if due:
            self.next_scan = step + 1 + step // 8  # scans are costly, or steps short
        return True

    def _watch(self, step: int, frame: Any) -> None:
        """See which statements run, where several may be what makes a container grow."""
        unsure = {told: items for told, items in self._grew.items() if len(self._places[told]) > 1}
        self._watched = {}
        if not unsure or self._windows >= len(WINDOWS) or all(told in self._ran for told in unsure):
            return
        if self._window is None:
            from .ran import Window

            self._window = Window()
        if self._window.begin([place for told in unsure for place in self._places[told]], frame):
            self._watched, self._watched_until = unsure, step + WINDOWS[self._windows]
        self._windows += 1

    def scan(
        self, at: int, frames: Iterable[Any], per_unit: float, asked: bool = False, last: bool = False
    ) -> None:  # fmt: skip
        """Take sizes of all that is in reach of threads; report what has been growing.

        Args:
            at: the step, or the time in ns.
            per_unit: what rates are told by, in steps or ns.
            asked: the engine asks, since memory grows.
            last: the program ends, so that one reading less must do.
        """
        from .reach import walk
        from .roots import roots

        trails: Dict[Any, _Trail] = {}
        named: Dict[Told, _Named] = {}
        early = self.over_time and self.scans < SCANS - 1  # the program may be over before the next
        enough = SCANS - (last or early)
        began = thread_time_ns()
        deadline = began + BUDGET_NS
        for found in walk(roots(frames, self._heap.roots() if self._heap else ()), self.tensors, deadline):
            for reading in self._readings(found):
                # What is replaced by something larger is a new object each time: there the name is the trail.
                key = (reading.kind, hash(found.name) if reading.replaced else id(found.thing))
                told = (found.name, reading.kind)
                trails[key] = trail = self._continued(self.trails.get(key), found.name, at, reading.items)
                short = last and len(trail.sizes) < enough
                if short and told not in self._names:
                    continue  # it was not seen to grow, or what ends the program has emptied it
                rate = steady_rate(trail.sizes, UNEVEN if self.over_time else EVENNESS, enough)
                name = named.setdefault(told, _Named(SCANS - 1 if self.over_time else SCANS - 2))
                name.add(found, reading, rate, trail)
                name.short = name.short or short
        in_time = thread_time_ns() < deadline
        for key, trail in self.trails.items():  # what a scan that ran out of time did not come to
            if key not in trails and not in_time and len(trails) < MAX_TRAILS and 4 * trail.sizes[-1][0] >= at:
                trails[key] = trail
        self.trails = trails
        if not last:  # then variables of functions are gone
            self.scans += 1
            if self.scans == SCANS:
                self.agent.fact("scans", "enough to see a container grow")
        for told, name in named.items():
            if name.objects == 1:
                name.tooth = self._teeth.see(told, name.items)
        self._see_by_name(named, at, enough, last)
        self._grew = {}
        self._another = ""
        self._tell(named, per_unit, at, in_time)
        if self._another or (self._unsure and not last):
            self.agent.fact("replaced", self._another)
            self._unsure = bool(self._another)
        self.costs.scanned(thread_time_ns() - began)
        if asked and not last and self.scans >= SCANS and not any(self.reported.values()) and self.costs.affords_look():
            self._walk_heap(at, per_unit)
        forget()

    def _see_by_name(self, named: Dict[Told, _Named], at: int, enough: int, last: bool) -> None:
        """What grows by being replaced is another object each time, of which only the name is the same."""
        names: Dict[Told, _Trail] = {}
        for told, name in list(named.items()):
            reading = name.largest[1]
            if name.objects <= 2 and not reading.replaced:  # two: it was replaced while the scan went on
                names[told] = trail = self._continued(self._names.get(told), told[0], at, reading.items)
                if name.rate <= 0 and trail.sizes[0][1] < trail.sizes[-1][1]:
                    name.renew(steady_rate(trail.sizes, UNEVEN if self.over_time else EVENNESS, enough), trail)
            if last and name.short and not name.renewed:
                del named[told]
        self._names = names

    def _walk_heap(self, at: int, per_unit: float) -> None:
        """Look through all of Python's heap: memory grows, and no name leads to what holds it."""
        if self._heap is None:
            from .heapwalk import Walk

            self._heap = Walk()
        began = thread_time_ns()
        self._heap.look(at)
        self.costs.looked(thread_time_ns() - began)
        if self._heap.complete():
            unit = "minute" if self.over_time else "step"
            fast = [(rate * per_unit, what) for what, rate in self._heap.grows.items()]
            rates = [
                "%s %s per %s" % (format(rate, ",.3g" if rate < 100 else ",.0f"), what, unit) for rate, what in fast
            ]
            self.agent.fact("heap_walk", self._heap.objects)
            self.agent.fact("heap_grows", ", ".join(rates[:3]))

    def _tell(self, named: Dict[Told, _Named], per_unit: float, at: int, in_time: bool) -> None:
        """Take back what has stopped, and report what grows, fastest first, within another BUDGET_NS.

        What is replaced comes last: of most of it the source says that it is not made of itself.
        """
        deadline = thread_time_ns() + BUDGET_NS
        for told, name in sorted(named.items(), key=lambda one: (one[1].rate > 0, one[1].renewed, -one[1].rate)):
            confirmed = name.rises and self.scans != SCANS  # what was told early is held against one scan more
            stopped = self.reported.get(told, 0) > 0 and in_time and not confirmed
            if name.rate > 0 or stopped or name.tooth.falls >= teeth.FALLS:
                self._report(name, name.rate * per_unit, at)
            if thread_time_ns() > deadline:
                return

    def _continued(self, old: Optional[_Trail], name: str, at: int, size: int) -> _Trail:
        """The trail with one more reading; a new one where the object is another, has shrunk, or steps begin again."""
        if old is None or old.name != name or old.sizes[-1][1] > size or old.sizes[-1][0] > at:
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
        base = container_base(type(thing))
        if base is not None:
            most = deque.maxlen.__get__(thing) if base is deque else None
            kind = found.kind or type(thing).__name__
            return [Reading(kind, length(thing), "", bound=most or 0, bound_by="maxlen=%d" % most if most else "")]
        if type(thing) is tuple:
            return [Reading(found.kind or "tuple", len(thing), "")]
        counted = sizes.readings(thing)
        return [reading._replace(kind=found.kind) for reading in counted] if found.kind else counted

    def _report(self, name: _Named, rate: float, at: int) -> None:
        found, reading = name.sample
        told = (found.name, reading.kind)
        if len(self.reported) >= MAX_REPORTED and told not in self.reported:
            return
        places = self._candidates(told, found, reading)
        if name.renewed:
            places = [place for place in places if place.again]
        if (reading.replaced or name.renewed) and not (places and places[0].again):
            if name.renewed and not self._another and self._kept(name, rate, told) is not None:
                self._another = "%s `%s`" % (told[1], told[0])
            return  # what takes its place may be larger for any reason: longer sequences
        try:
            record = self._kept(name, rate, told)
        except (RuntimeError, IndexError):  # another thread changes it
            return
        if record is None:
            return
        self.reported[told] = rate
        if rate > 0:
            self._grew[told] = reading.items
        record.update(type="holder", step=0 if self.over_time else at, name=found.name, items=name.items)
        record["items_per_minute" if self.over_time else "items_per_step"] = round(rate, 4)
        record.update(name.tooth.told())
        if name.renewed:
            record["renewed"] = True
        self._say_where(record, told, name)
        if name.objects == 1:
            record.update(self._bound(told, found, reading))
        self.agent.record(record)

    def _bound(self, told: Told, found: Found, reading: Reading) -> Dict[str, Any]:
        """What it has at most."""
        if told not in self._bounds:
            from . import placing

            self._bounds[told] = placing.bound(found, reading, self._places[told])
        return self._bounds[told]

    def _kept(self, name: _Named, rate: float, told: Told) -> Optional[Dict[str, Any]]:
        """What it is and what its items hold; None where that is too little to be told."""
        found, reading = name.sample
        kind = "hooks" if found.leaf.endswith("_hooks") else reading.kind
        record: Dict[str, Any] = {"kind": kind, "contains": reading.contains, "graph": kind == "autograd graph"}
        if reading.contains == "byte":
            record["tensor_bytes"] = name.items
            if rate <= 0 and name.tooth.falls and name.tooth.highest < LEAST_TOOTH:
                return None
        elif not reading.replaced:
            items = newest_items(found.thing, NEWEST)
            measure = self._measured(items, insides.newest_keys(found.thing, NEWEST))
            own = measure.total() + insides.slot(found.thing)
            each = reading.bytes / max(reading.items, 1)
            unknown = measure.opaque or (measure.empty() and not reading.bytes)  # how large an item is
            small = rate * max(own, each) < self.small()
            if rate > 0 and small and not (measure.graph or unknown or found.kind):
                return None
            if rate <= 0 and told not in self.reported and not self._is_full(name.tooth, max(own, each)):
                return None
            surely = measure.data() if measure.rough or 2 * measure.data() > own else own
            held = 0 if small and unknown else int(max(surely, each) * name.items)
            record.update(self._described(told, items), graph=measure.graph)
            record["contains"] = reading.contains or (type(items[0]).__name__ if items else "")
            if items and all(map(insides.keeps_frames, items)):
                record["traceback"] = True
            if held:
                record["tensor_bytes"] = held
        return record

    def _is_full(self, tooth: teeth.Tooth, each: float) -> bool:
        """Whether what is emptied again and again had much in it."""
        return tooth.highest * each >= LEAST_TOOTH

    def _candidates(self, told: Told, found: Found, reading: Reading) -> List[Place]:
        """Statements that may make it grow."""
        known = self._places.get(told)
        if known is None:
            from . import placing

            known = self._places[told] = placing.candidates(found, reading)
        return known

    def _say_where(self, record: Dict[str, Any], told: Told, name: _Named) -> None:
        """The line, and the others that it may be."""
        from . import placing

        places = [place for place in self._places[told] if place.again or not name.renewed]
        places = placing.likely(places, record["contains"])
        seen = self._added(told, name, places)
        places = seen or places
        if places:
            best = places[0] if seen else max(places, key=lambda place: place.score)
            record.update(placing.where(best))
            others = [place for place in places if place.line != best.line or place.file != best.file]
            if others:
                record["others"] = [placing.where(other) for other in others[:MAX_LINES]]
        if seen and not any(place.tested for place in seen):
            record["ran"] = True

    def _added(self, told: Told, name: _Named, places: List[Place]) -> List[Place]:
        """Statements that were seen to run, those first that add most of what is kept; none where nothing was seen."""
        window, began = self._window, self._watched.get(told)
        if window is not None and not window.open and began is not None:
            ran = window.ran(places)
            if ran:
                self._ran[told] = self._heaviest(name, began, window.order(places)) or ran
        return self._ran.get(told, [])

    def _heaviest(self, name: _Named, began: int, order: List[Place]) -> List[Place]:
        """Of statements in the order in which they ran, those whose items hold the bytes; none where that is not known.

        Each must have added one item at the end, so that the last that ran added the newest.
        """
        found, reading = name.sample
        if name.objects != 1 or reading.items - began != len(order) or isinstance(found.thing, set):
            return []
        bytes_of: Dict[Place, float] = {}
        for place, item in zip(reversed(order), newest_items(found.thing, LAST)):
            bytes_of[place] = bytes_of.get(place, 0.0) + self._measured([item]).total()
        most = max(bytes_of.values(), default=0.0)
        heavy = [place for place in bytes_of if bytes_of[place] >= LEAST_PART * most]
        return sorted(heavy, key=lambda place: -bytes_of[place])

    def small(self) -> int:
        """Bytes per step, or minute, below which growth is not told."""
        return SMALL_MINUTE if self.over_time else SMALL

    def _measured(self, items: List[Any], keys: Sequence[Any] = ()) -> Measure:
        from .measure import Measure

        measure = Measure(self.tensors)
        for item in zip_longest(items, keys):
            measure.add(*item)
        return measure

    def _described(self, told: Told, items: List[Any]) -> Dict[str, Any]:
        """What an item is, as it was when the container was first told: that may be costly, and seldom changes.

        The newest may be in use: its graph is freed when backward is done.
        """
        known = self._descriptions.get(told)
        if known is None:
            from .kept import described

            known = self._descriptions[told] = described(items[1:] or items, self.tensors, thread_time_ns() + BUDGET_NS)
        return known


def newest_items(thing: Any, most: int) -> List[Any]:
    """Up to so many items of something that was counted, newest first."""
    kind = type(thing)
    if container_base(kind) is not None:
        return newest(thing, most)
    if kind is tuple:
        return list(reversed(thing[-most:]))
    if named(kind) == ("functools", "_lru_cache_wrapper"):
        tables = [table for table in gc.get_referents(thing) if type(table) is dict and table]
        return list(islice(reversed(tables[0].items()), most)) if tables else []
    if named(kind) == ("_queue", "SimpleQueue"):
        inner = gc.get_referents(thing)
        items = inner[0] if type(inner[0]) is list else [item for item in inner if item is not kind]
        return list(reversed(items))[:most]
    return []


def forget() -> None:
    """What a scan knew of the program's classes and source."""
    sizes.forget()
    insides.forget()
    sources = sys.modules.get(__package__ + ".sources")
    if sources is not None:
        sources.forget()


def steady_rate(sizes: List[Tuple[int, int]], evenness: float = EVENNESS, scans: int = SCANS) -> float:
    """Items a step (or ns), if the last readings (step, items), so many, grew evenly, or all as a whole; else 0."""
    if len(sizes) < scans:
        return 0.0
    last = sizes[-scans:]
    rates = [_rate(a, b) for a, b in zip(last, last[1:])]
    if min(rates) > 0 and max(rates) <= evenness * min(rates):
        return _longest_rate(sizes, _rate(last[0], last[-1]))
    return _uneven_rate(sizes)


def _longest_rate(sizes: List[Tuple[int, int]], lately: float) -> float:
    """The rate since the first rise, where that is about the same: many items at once make a few readings inexact."""
    first = next(at for at, (a, b) in enumerate(zip(sizes, sizes[1:])) if b[1] > a[1])
    rate = _rate(sizes[first], sizes[-1])
    return rate if max(rate, lately) <= EVENNESS * min(rate, lately) else lately


def _uneven_rate(sizes: List[Tuple[int, int]]) -> float:
    """The rate of what grows now and then, as once an epoch: SCANS - 1 rises, both halves about as fast; else 0."""
    if sum(b[1] > a[1] for a, b in zip(sizes, sizes[1:])) < SCANS - 1:
        return 0.0
    middle = sizes[len(sizes) // 2]
    slow, fast = sorted((_rate(sizes[0], middle), _rate(middle, sizes[-1])))
    return _rate(sizes[0], sizes[-1]) if fast <= UNEVEN * slow else 0.0


def _rate(first: Tuple[int, int], last: Tuple[int, int]) -> float:
    return (last[1] - first[1]) / (last[0] - first[0])
