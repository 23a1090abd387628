"""Spans that the program itself names: `with hightide.span("encode")`.

    enter("encode") … leave ─▶ two edges, with the number of the stay     (threads and tasks overlap: no stack)
    too many in a short time ─▶ counted and timed in place ─▶ every PERIOD_NS a `counted` record

Edges may take 1/SHARE of the time, with a burst at the start. What is beyond is only counted: how often, how long and
the longest stay are exact in any case, memory is read at the edges that are recorded.
"""

from __future__ import annotations

from _thread import RLock, get_native_id
from itertools import count

from .channel import monotonic_ns
from .forks import MARKED
from .resident import rss

TYPE_CHECKING = False  # for type checkers only: importing typing takes longer than all the rest of the start
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

    from .agent import Agent
    from .channel import Channel
    from .training import Training

    Stay = tuple[Any, ...]

BURST_NS = 4_000_000  # that edges may take at once: a third of what the ring has room for
SHARE = 64  # one part of the time in so many is theirs
STAY_NS = 5000  # that both edges of one take
PAUSE_NS = 1_000_000  # of it, while there is no room
DEVICE_NS = 20_000  # that asking an allocator takes
FRESH_NS = 20_000  # within which a reading of the resident set still stands
PERIOD_NS = 500_000_000
MOST_NAMES = 1000
MOST_OPEN = 10_000  # stays without edges that are followed: of more, those still open at the end are not counted
OTHERS = "(other spans)"
LONGEST = 200  # characters of a name
_UNUSED = (0, -1, -1)  # no framework is


class Spans:
    """The named spans of one process."""

    def __init__(self, agent: Agent, training: Callable[[], Optional[Training]]) -> None:
        self.agent = agent
        self._training = training  # None: no framework is used
        self._numbers = count(1)
        self._ids: dict[str, int] = {}
        self._begin()
        agent.on_renew.append(self._begin)
        agent.at_end.append(self.end)

    def _begin(self) -> None:
        """At the start, and in a forked child, whose channel knows no name yet. Its parent's spans are its parent's."""
        self._lock = RLock()
        self._told: dict[str, int] = {}
        self._cells: dict[str, list[int]] = {}  # stays only counted: how many, their time, the longest
        self._late: list[Stay] = []  # ends for which there was no room
        self._open: dict[int, Stay] = {}  # stays that will only be counted, by number
        self._credit = BURST_NS
        self._at = self._due = monotonic_ns()
        self._rss = self._read = -1

    def enter(self, name: str) -> Stay:
        """Begin a stay; leave() takes what is returned. Never raises."""
        now = monotonic_ns()
        credit = self._credit + (now - self._at) // SHARE
        self._at = now
        if credit <= 0 and name in self._told:
            self._credit = credit
            return self._uncounted(name, now)
        self._credit = (credit if credit < BURST_NS else BURST_NS) - STAY_NS  # at once: other threads take of it too
        agent = self.agent
        channel = agent.channel if agent.mark[0] == MARKED else agent.ready()
        if channel is None:
            return self._uncounted(name, now)
        name_id = self._told.get(name) or self._tell(name)
        number = next(self._numbers) % 65535 + 1
        tid = get_native_id()
        if now - self._read > FRESH_NS:
            self._rss, self._read = rss(), now
        step, allocated, reserved = _UNUSED if self._training() is None else self._frameworks()
        now = (
            monotonic_ns()
        )  # what came before is ours; and the engine, which reads the heap at this record, sees it in time
        if name_id and channel.stay(number, name_id, 0, tid, step, self._rss, allocated, reserved, now):
            return name, now, channel, number, name_id, tid
        self._credit = -PAUSE_NS  # the ring is full
        return self._uncounted(name, now)

    def _uncounted(self, name: str, now: int) -> Stay:
        """A stay without edges, which is counted as it ends, or as the process does."""
        number = next(self._numbers)
        stay = name, now, None, number
        if len(self._open) < MOST_OPEN:
            self._open[number] = stay
        return stay

    def leave(self, stay: Stay) -> None:
        """End a stay. Never raises."""
        now = monotonic_ns()
        channel: Optional[Channel] = stay[2]
        if channel is None:
            self._open.pop(stay[3], None)
            self._count(stay[0], now - stay[1], now)
            return
        agent = self.agent
        if channel is not (agent.channel if agent.mark[0] == MARKED else agent.ready()):
            return  # begun before a fork: it ends in the parent
        if self._late:
            self._again(channel)
        if now - self._read > FRESH_NS:
            self._rss, self._read = rss(), now
        step, allocated, reserved = _UNUSED if self._training() is None else self._frameworks()
        end = (stay[3], stay[4], 1, stay[5], step, self._rss, allocated, reserved, now)
        if not channel.stay(*end):
            self._late.append(end)

    def end(self) -> None:
        """Count what is still open as the process ends, and tell all that is left."""
        now, left = monotonic_ns(), list(self._open.values())
        self._open = {}
        for name, start, *_ in left:
            self._count(name, now - start, now)
        if left:
            names = sorted({name[:LONGEST] for name, *_ in left})
            self.agent.log("spans still open as the process ended, counted up to there: %s" % ", ".join(names[:8]))
        self.flush()

    def flush(self) -> None:
        """Tell what was only counted, and ends that are late."""
        channel = self.agent.ready()
        if channel is None:
            return
        self._again(channel)
        with self._lock:
            cells = list(self._cells.items())
            for at in range(0, len(cells), 100):
                self._tell_counted(cells[at : at + 100])

    def _tell_counted(self, cells: list[tuple[str, list[int]]]) -> None:
        """Tell some of it, and begin anew with what was told. What there is no room for waits."""
        counted = []
        for name, cell in cells:
            number = self._told.get(name) or self._tell(name)
            if number:
                counted.append({"id": number, "count": cell[0], "total_ns": cell[1], "max_ns": cell[2]})
        if counted and self.agent.record({"type": "counted", "spans": counted}):
            for name, _ in cells:
                if name in self._told:
                    del self._cells[name]

    def _count(self, name: str, took: int, now: int) -> None:
        with self._lock:
            cell = self._cells.get(name)
            if cell is None:
                if len(self._cells) >= MOST_NAMES:
                    name = OTHERS
                cell = self._cells.setdefault(name, [0, 0, 0])
            cell[0] += 1
            cell[1] += took
            cell[2] = max(cell[2], took)
            due = now >= self._due
            if due:
                self._due = now + PERIOD_NS
        if due:
            self.flush()

    def _again(self, channel: Channel) -> None:
        with self._lock:
            late, self._late = self._late, []
        self._late += [end for end in late if not channel.stay(*end)]

    def _frameworks(self) -> tuple[int, int, int]:
        """Steps completed, and bytes allocated and reserved on the device; -1: not known."""
        training = self._training()
        if training is None:
            return _UNUSED
        tracker = training.tracker
        if tracker.device is None:
            return tracker.steps_now(), -1, -1
        self._credit -= DEVICE_NS
        return (tracker.steps_now(), *tracker.device())

    def _tell(self, name: str) -> int:
        """The name's id, which the channel learns now; 0 where there is no room for that."""
        with self._lock:
            if name not in self._ids and len(self._ids) >= MOST_NAMES:
                self.agent.log("more than %d names of spans: the others are one" % MOST_NAMES)
                name = OTHERS
            number = self._ids.setdefault(name, len(self._ids) + 1)
            if name not in self._told:
                if not self.agent.record({"type": "spans", "spans": [{"id": number, "name": name[:LONGEST]}]}):
                    return 0
                self._told[name] = number
        return number
