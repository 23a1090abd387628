"""What Python's collector of garbage finds: memory that objects kept which refer to each other in a cycle.

    gc.callbacks ─▶ start … stop ─▶ `collected`: when, how many objects, by how much memory fell
    the end, if cycles held much or memory grew ─▶ one collection more, and `cycle`: of which class, through what

The engine adds up what the heap freed between start and stop, by line. A collection that is looked at costs two
readings of the resident set. One of all objects is looked at unless there was a look within PERIOD_NS. Those of young
objects are many: looks at them take at most one part in SHARE of the time.
"""

from __future__ import annotations

import atexit
import gc
from types import FrameType, FunctionType
from typing import Any, Callable, Dict, List, Optional, Tuple

from .agent import Agent
from .channel import monotonic_ns
from .places import is_library
from .resident import rss

PERIOD_NS = 20_000_000
SHARE = 2000
LOOK_NS = 100_000  # what a look counts for at most: where it took longer, others had the processor meanwhile
OLDEST = 2  # the generation that has all objects
TOLD_NS = 200_000_000  # between two that freed little
MUCH = 1 << 20  # bytes of memory that are told at once
WORTH = 16 << 20  # at which the end is looked at
DEEPEST = 6  # references in a cycle that is named
MOST = 20_000  # objects that are looked at

_PARTS = (dict, list, tuple, set, FunctionType, FrameType, type)

Held = Callable[[], Tuple[int, int]]


class Collector:
    """The collections of one process."""

    def __init__(self, agent: Agent, device: Callable[[], Optional[Held]]) -> None:
        self.agent = agent
        self._device = device  # how to ask what devices hold; None: none is used
        self._began = self._next = self._young = self._told = 0
        self._before = (-1, -1)
        self._most = 0  # bytes that one collection freed
        self._cost = 0  # ns that the look at a start took
        self._quiet = self._ended = False

    def install(self) -> None:
        """Look at collections from now on."""
        gc.callbacks.append(self._called)
        atexit.register(self._end)
        self.agent.at_end.append(self._end)  # of a process that leaves without exit handlers

    def _called(self, phase: str, info: Dict[str, int]) -> None:
        try:
            now = monotonic_ns()
            if phase == "start":
                due = self._next if info.get("generation") == OLDEST else self._young
                self._began = now if now >= due and not self._quiet else 0
                if self._began:
                    self._before = self._memory()
                    self._cost = monotonic_ns() - now
            elif self._began:
                began, self._began = self._began, 0
                self._next = now + PERIOD_NS
                if info["collected"]:
                    self._tell(began, now, info)
                    atexit.unregister(self._end)
                    atexit.register(self._end)  # before those of what was imported meanwhile
                cost = min(self._cost + monotonic_ns() - now, LOOK_NS)
                self._young = now + max(PERIOD_NS, SHARE * cost)
        except Exception as error:
            self.agent.log("could not look at a collection of garbage", error)

    def _memory(self) -> Tuple[int, int]:
        device = self._device()
        return rss(), -1 if device is None else device()[0]

    def _tell(self, began: int, ended: int, info: Dict[str, int]) -> None:
        resident, allocated = self._memory()
        freed = self._before[0] - resident, self._before[1] - allocated
        self._most = max(self._most, *freed)
        if max(freed) < MUCH and ended < self._told + TOLD_NS:
            return
        self._told = ended
        record: Dict[str, Any] = {"type": "collected", "began_ns": began, "ended_ns": ended, "count": info["collected"]}
        record.update(rss_bytes=freed[0], bytes=freed[1] if allocated >= 0 else 0)
        self.agent.record(record)

    def _end(self) -> None:
        """Collect once more where that may tell something: what never was collected is garbage as well.

        What other exit handlers let go of from now on, as pyplot all its figures, was held until the program's end.
        """
        if self._ended:
            return
        self._ended, channel = True, self.agent.channel
        grew = channel is not None and channel.scan_seq() != 0
        try:
            if self._most >= WORTH or grew:
                self._collect_last()
        finally:
            self._quiet = True

    def _collect_last(self) -> None:
        if not gc.isenabled():
            self.agent.fact("collector", "off")
        flags, known = gc.get_debug(), len(gc.garbage)
        try:
            self._quiet = True
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            record = cycle(gc.garbage[known:][:MOST])
            if record is not None:
                self.agent.record(record)
        finally:
            del gc.garbage[known:]
            gc.set_debug(flags)
            self._quiet, self._next, self._young, self._told = False, 0, 0, 0
            gc.collect()


def cycle(garbage: List[Any]) -> Optional[Dict[str, Any]]:
    """A `cycle` record: the class of which there is most in it, the user's own first, and what leads back to it."""
    found = {id(thing): thing for thing in garbage}
    counts: Dict[type, int] = {}
    for thing in garbage:
        if not issubclass(type(thing), _PARTS) and not _own(thing):  # isinstance also asks a proxy whose object is gone
            counts[type(thing)] = counts.get(type(thing), 0) + 1
    for kind in sorted(counts, key=lambda kind: (_users(kind), counts[kind]), reverse=True)[:8]:
        for thing in [thing for thing in garbage if type(thing) is kind][:8]:
            path = _path(thing, found)
            if path is not None:
                record = {
                    "type": "cycle",
                    "class": kind.__qualname__,
                    "count": counts[kind],
                    "name": kind.__qualname__ + path,
                }
                place = _place(kind)
                if place is not None:
                    record["file"], record["line"] = place
                return record
    return None


def _own(thing: Any) -> bool:
    return type(thing).__module__.startswith("hightide_agent")


def _users(kind: type) -> bool:
    place = _place(kind)
    return place is not None and not is_library(place[0])


def _place(kind: type) -> Optional[Tuple[str, int]]:
    """File and line of the first method that the class defines."""
    codes = [value.__code__ for value in vars(kind).values() if isinstance(value, FunctionType)]
    first = min(codes, key=lambda code: code.co_firstlineno, default=None)
    return None if first is None else (first.co_filename, first.co_firstlineno)


def _path(thing: Any, garbage: Dict[int, Any]) -> Optional[str]:
    """What leads from an object back to itself: ".children[…].parent"; None where that was not found."""
    left, seen = [(thing, "", 0)], {id(thing)}
    while left and len(seen) < 2000:
        at, path, depth = left.pop(0)
        for name, value in _named(at):
            if value is thing and path + name:
                return path + name
            if id(value) in garbage and id(value) not in seen and depth < DEEPEST:
                seen.add(id(value))
                left.append((value, path + name, depth + 1))
    return None


def _named(thing: Any) -> List[Tuple[str, Any]]:
    """What an object refers to, each with how it is reached."""
    kind = type(thing)
    if issubclass(kind, dict):
        return [
            ("[%.40r]" % (key,) if isinstance(key, (str, int)) else "[…]", value)
            for key, value in list(thing.items())[:1000]
        ]
    if issubclass(kind, (list, tuple, set)):
        return [("[…]", value) for value in list(thing)[:1000]]
    if kind is FunctionType:
        cells = zip(thing.__code__.co_freevars, thing.__closure__ or ())
        return [(" (its closure's %s)" % name, cell.cell_contents) for name, cell in cells if _filled(cell)]
    if kind is FrameType:
        return [(" (local %s)" % name, value) for name, value in list(thing.f_locals.items())]
    attributes = getattr(thing, "__dict__", None)
    named = [(".%s" % name, value) for name, value in list(attributes.items())] if type(attributes) is dict else []
    known = {id(value) for _, value in named}
    return named + [
        ("", value) for value in gc.get_referents(thing) if id(value) not in known and value is not attributes
    ]


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
