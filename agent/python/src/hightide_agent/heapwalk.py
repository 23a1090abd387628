"""The last resort of the search for what grows: all objects of Python's heap, where no name led to a container.

    memory grows, no holder ─▶ Walk.look: objects by type, entries by container ─▶ what grew at a steady rate
      ─▶ what refers to it ─▶ weak references that the next scan begins at, too

Only what the collector of cycles knows is seen, and dicts in it: containers and objects, not numbers, text or arrays.
Nothing is kept alive between looks, nor for longer than a call while one goes on (see collected). What refers to what
grows is looked for only where no other thread runs: it may be at the making of a tuple, which fails if somebody else
refers to it.
"""

from __future__ import annotations

import _thread
import gc
import sys
import weakref
from collections import deque
from itertools import islice
from struct import Struct
from time import thread_time_ns
from types import CellType, FrameType, FunctionType, ModuleType
from typing import Any, Dict, Iterator, List, Tuple

from . import collected
from .insides import named, newest
from .reach import WAITING, Found, Owner

TOO_LONG_NS = 500_000_000  # of processor time of a look, after which there is none: 300 ms for 400,000 objects
LEAST = 32  # entries of a container that is followed
MOST = 50_000  # containers that are
LOOKS = 3  # that must agree
UNEVEN = 3.0  # largest ratio between the rates of growth from look to look
KEPT = 8
GROWING = 4  # containers whose referrers are looked for
LEVELS = 3  # of referrers
MOST_ROOTS = 64
MOST_WAITING = 32  # of these, that wait
_KINDS = (list, dict, set, deque)
_PASSED = (*_KINDS, tuple, CellType)  # lead to what refers to them in turn
_NO_ROOTS = (*_PASSED, FunctionType, ModuleType, type)

Trail = bytes  # pairs of READING: as tuples they would be among the objects that are counted
READING = Struct("qq")  # step or ns, objects or entries


class Walk:
    """What looks have found."""

    def __init__(self) -> None:
        self.objects = 0  # of the last look
        self.looks = 0
        self.over = False  # there is none any more: they take too long
        self.grows: Dict[str, float] = {}  # what was seen to grow → entries or objects a step, or ns
        self._roots: List[Any] = []  # weak references
        self._types: Dict[int, Trail] = {}  # by id
        self._lengths: Dict[int, Trail] = {}

    def look(self, at: int) -> None:
        """Go through all objects, at a step or a time."""
        if self.over:
            return
        began = thread_time_ns()
        counts = collected.counts()
        self.objects = sum(counts.values())
        self.looks += 1
        lengths = self._sizes()
        if self.looks == 1:
            self._waiting()
        self._types = {key: _longer(self._types, key, at, count) for key, count in counts.items()}
        self._lengths = {key: _longer(self._lengths, key, at, count) for key, count in lengths.items()}
        self.grows = {}
        if self.looks >= LOOKS:
            growing = self._growing()
            if not _others():
                self._refer(growing)
        self.over = thread_time_ns() - began > TOO_LONG_NS

    def _sizes(self) -> Dict[int, int]:
        """Entries of containers, by address. The containers are held for two calls in C."""
        containers = collected.of_types(_KINDS)  # a list that was made before would be in itself
        containers += collected.plain_dicts()
        sizes = dict(zip(map(id, containers), map(len, containers)))
        del containers
        return dict(islice((pair for pair in sizes.items() if pair[1] >= LEAST), MOST))

    def complete(self) -> bool:
        """Whether there were enough looks to see what grows."""
        return self.looks > LOOKS + 1

    def roots(self) -> Iterator[Found]:
        """What holds something that grows, as far as it still lives."""
        for reference in self._roots:
            thing = reference()
            if thing is not None:
                name = getattr(thing, "__name__", "") if type(thing) in WAITING else named(type(thing))[1]
                yield Found(name, name, Owner("", "", None, False), thing)

    def _waiting(self) -> None:
        """Generators and coroutines, which a loop may hold without a name."""
        self._roots = [weakref.ref(o) for o in collected.of_types(WAITING)[:MOST_WAITING]]

    def _growing(self) -> List[Any]:
        """The containers that grow; what they and the types that become more are called is kept."""
        rates = sorted(((rate, key) for key, rate in map(_rated, self._lengths.items()) if rate > 0), reverse=True)
        lengths = {key: rate for rate, key in rates[:GROWING]}
        rises = {key: _rises(sizes) for key, sizes in self._types.items()}
        fastest = sorted((key for key, rate in rises.items() if rate > 0), key=lambda key: -rises[key])[:GROWING]
        found = collected.with_ids({*lengths, *fastest})
        found += [thing for thing in collected.plain_dicts() if id(thing) in lengths]
        kinds = {id(kind): kind for kind in (*_KINDS, *(thing for thing in found if issubclass(type(thing), type)))}
        if not kinds.keys() >= set(fastest):  # of C, which the collector does not know: by their objects
            kinds = collected.types()
        for key in fastest:
            if key in kinds:
                self.grows["objects of type " + named(kinds[key])[1]] = rises[key]
        growing = [thing for thing in found if type(thing) in _KINDS and id(thing) in lengths]
        for thing in growing:
            try:
                last = newest(thing, 1)
            except RuntimeError:  # another thread changes it
                continue
            what = "entries of a %s (%s)" % (type(thing).__name__, named(type(last[0]))[1] if last else "")
            self.grows[what] = self.grows.get(what, 0.0) + lengths[id(thing)]
        return growing

    def _refer(self, growing: List[Any]) -> None:
        """Take what refers to things that grow among the roots."""
        level, ours = growing, {id(growing)}
        for _ in range(LEVELS):
            if not level:
                return
            ours.add(id(level))
            found = [r for r in gc.get_referrers(*level) if id(r) not in ours and type(r) is not FrameType]
            ours.add(id(found))
            for thing in found:
                if not issubclass(type(thing), _NO_ROOTS) and len(self._roots) < MOST_ROOTS:
                    try:
                        self._roots.append(weakref.ref(thing))
                    except TypeError:  # it can have none
                        continue
            level = [thing for thing in found if type(thing) in _PASSED][: 2 * GROWING]


def _rated(of: Tuple[int, Trail]) -> Tuple[int, float]:
    return of[0], _rate(of[1])


def _others() -> bool:
    """Whether the program has other threads: our own makes no tuples that matter to it."""
    frames = sys._current_frames()
    frames.pop(_thread.get_ident())  # this one in a variable of its own would keep itself
    for outermost in frames.values():
        while outermost.f_back is not None:
            outermost = outermost.f_back
        if "/hightide_agent/" not in outermost.f_code.co_filename:
            return True
    return False


def _rate(trail: Trail) -> float:
    """Growth a step (or ns) over the last LOOKS readings, if it was about even; else 0."""
    last = list(READING.iter_unpack(trail))[-LOOKS:]
    rates = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(last, last[1:])]
    if len(last) < LOOKS or min(rates) <= 0 or max(rates) > UNEVEN * min(rates):
        return 0.0
    rate: float = (last[-1][1] - last[0][1]) / (last[-1][0] - last[0][0])
    return rate


def _rises(trail: Trail) -> float:
    """Growth a step (or ns) of what was seen to rise LOOKS times, however unevenly, and never to fall; else 0."""
    sizes = list(READING.iter_unpack(trail))
    if sum(b[1] > a[1] for a, b in zip(sizes, sizes[1:])) < LOOKS:
        return 0.0
    rate: float = (sizes[-1][1] - sizes[0][1]) / (sizes[-1][0] - sizes[0][0])
    return rate


def _longer(known: Dict[int, Trail], key: int, at: int, size: int) -> Trail:
    """A trail with one more reading; a new one where it has shrunk."""
    old = known.get(key, b"")
    if old:
        before, last = READING.unpack(old[-READING.size :])
        if last > size or before == at:
            old = b""
    return old[READING.size * (1 - KEPT) :] + READING.pack(at, size)
