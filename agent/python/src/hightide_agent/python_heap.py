"""Lines that hold Python's memory, by the standard library's tracemalloc, where the engine asked for it.

    start ─▶ tracemalloc.start(depth) … the watcher's tick ─▶ due? ─▶ living blocks, summed by stack ─▶ `python_heap`

A look copies what tracemalloc knows of every block, while no other thread runs Python: some 3 µs each. So looks
take at most one part in SHARE of the time, and none is made where there are more than MOST_BLOCKS. Each record is
the whole picture: one that is lost costs one look.
"""

from __future__ import annotations

import os
import sys
from time import thread_time_ns

from .channel import MAX_JSON, monotonic_ns
from .encode import encode

TYPE_CHECKING = False  # for type checkers only: importing typing takes longer than all the rest of the start
if TYPE_CHECKING:
    from typing import Any, Dict, List, Tuple

    from .agent import Agent

    Place = Tuple[str, int]
    Stack = Tuple[Place, ...]  # innermost first
    Sums = Dict[Stack, List[int]]  # bytes and blocks

FRAMES = 1  # of a stack, where the engine does not say how many
SHARE = 20
SOONEST_NS = 250_000_000  # between two looks
SELDOM = 600  # looks in all of a run, about: a long one has them seldom
AGAIN_NS = 5_000_000_000  # after there were too many blocks
MOST_BLOCKS = 2_000_000  # a look at them takes some 300 MB for a moment
MOST_SITES = 300
LEAST = 64 << 10  # bytes of a line that is told by itself, if that is one part in LEAST_SHARE
LEAST_SHARE = 2000

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep


class PythonHeap:
    """What tracemalloc knows of one process."""

    def __init__(self, agent: Agent, tracemalloc: Any) -> None:
        self.agent = agent
        self._tracemalloc = tracemalloc
        agent.on_renew.append(self.renew)
        agent.at_end.append(self.last)
        self.renew()

    def renew(self) -> None:
        """In a forked child, or another recording: nothing was told there."""
        self._began, self._next = monotonic_ns(), 0
        self._spent = self._longest = 0  # ns of looks

    def tick(self) -> None:
        """Look, if that is due. Costs microseconds where it is not."""
        if monotonic_ns() >= self._next and self._tracing():
            self.look()

    def last(self) -> None:
        """The program ends: what it holds now is held at its end."""
        if self._tracing():
            self.look()

    def look(self) -> None:
        """Tell what each line holds now."""
        if getattr(sys, "getallocatedblocks", int)() > MOST_BLOCKS:
            self._next = monotonic_ns() + AGAIN_NS
            self.agent.fact("tracemalloc", "too many blocks")
            return
        began = thread_time_ns()
        held, peak = self._tracemalloc.get_traced_memory()
        own = self._tracemalloc.get_tracemalloc_memory()
        sums = _sums(self._tracemalloc.take_snapshot())
        self._record(*_shown(sums), peak=max(peak, held), own=own, began=began)

    def _record(self, sites: List[Tuple[Stack, List[int]]], rest: List[int], peak: int, own: int, began: int) -> None:
        while True:
            files: Dict[str, int] = {}
            rows = [
                sums + [number for file, line in stack for number in (files.setdefault(file, len(files)), line)]
                for stack, sums in sites
            ]
            cost = thread_time_ns() - began
            record: Dict[str, Any] = {
                "type": "python_heap",
                "files": list(files),
                "sites": rows,
                "rest": rest,
                "peak_bytes": peak,
                "own_bytes": own,
                "looks_ns": self._spent + cost,
                "longest_ns": max(self._longest, cost),
            }
            if len(encode(record)) < MAX_JSON or len(sites) < 2:
                break
            half = len(sites) // 2
            for _, (size, count) in sites[half:]:
                rest = [rest[0] + size, rest[1] + count]
            sites = sites[:half]
        self.agent.record(record)
        now, cost = monotonic_ns(), thread_time_ns() - began
        self._spent, self._longest = self._spent + cost, max(self._longest, cost)
        self._next = now + max(SOONEST_NS, SHARE * cost, (now - self._began) // SELDOM)

    def _tracing(self) -> bool:
        if self._tracemalloc.is_tracing():
            return True
        self.agent.fact("tracemalloc", "stopped by the program")
        return False


def start(agent: Agent) -> Any:
    """Have tracemalloc begin, if the engine asked for it; None where it did not, or this Python has none."""
    asked = os.environ.get("HIGHTIDE_TRACEMALLOC")
    if not asked:
        return None
    try:
        import tracemalloc

        if not tracemalloc.is_tracing():
            tracemalloc.start(int(asked) if asked.isdigit() and asked != "0" else FRAMES)
    except Exception as error:  # PyPy has none
        agent.fact("tracemalloc", "none")
        agent.log("tracemalloc could not be started", error)
        return None
    return PythonHeap(agent, tracemalloc)


def _sums(snapshot: Any) -> Sums:
    """Bytes and blocks of each stack. The stacks of a snapshot are one object where they are alike."""
    by_id: Dict[int, List[Any]] = {}
    for trace in snapshot.traces._traces:  # its public form makes an object of each block
        found = by_id.get(id(trace[2]))
        if found is None:
            by_id[id(trace[2])] = [trace[2], trace[1], 1]
        else:
            found[1] += trace[1]
            found[2] += 1
    sums: Sums = {}
    for stack, size, count in by_id.values():
        if stack[0][0] != __file__:  # this very look
            _add(sums, tuple(place for place in stack if not place[0].startswith("<frozen")), size, count)
    return sums


def _shown(sums: Sums) -> Tuple[List[Tuple[Stack, List[int]]], List[int]]:
    """The stacks that hold most, and what all others hold. Small stacks of one line are told together."""
    least = max(LEAST, sum(size for size, _ in sums.values()) // LEAST_SHARE)
    shown: Sums = {}
    small: Sums = {}
    for stack, (size, count) in sums.items():
        if size >= least and stack:
            _add(shown, stack, size, count)
        else:
            _add(small, _line(stack), size, count)
    for stack, (size, count) in small.items():
        if size >= least and stack:
            _add(shown, stack, size, count)
            small[stack] = [0, 0]
    most = sorted(shown.items(), key=lambda site: -site[1][0])
    left = [sums for _, sums in most[MOST_SITES:]] + list(small.values())
    return most[:MOST_SITES], [sum(size for size, _ in left), sum(count for _, count in left)]


def _line(stack: Stack) -> Stack:
    """The program's own line of a stack, else one of ours, else its innermost. Python's import system has none."""
    from .places import is_library

    hook, ours = os.environ.get("HIGHTIDE_AGENT_PATH", _OURS), False
    for place in stack:
        if place[0].startswith((_OURS, hook)):
            ours = True
        elif not is_library(place[0]) and not place[0].startswith("<"):
            return (place,)
    return ((_OURS + "start.py", 1),) if ours else stack[:1]


def _add(sums: Sums, stack: Stack, size: int, count: int) -> None:
    found = sums.setdefault(stack, [0, 0])
    found[0] += size
    found[1] += count
