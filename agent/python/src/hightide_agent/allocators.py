"""What frameworks' allocators count, read at an interval on a thread of our own.

    an adapter ─▶ add(framework, read) ─▶ every interval: read() ─▶ (device, quantity, value) ─▶ counters

The thread starts with the first allocator. It is not one of threading's: nobody waits for it at exit, and scripts
that count threads do not meet it. It keeps itself below SHARE of a processor by sleeping longer after costly readings.
"""

from __future__ import annotations

import _thread
import os
from time import sleep, thread_time_ns
from typing import TYPE_CHECKING, Dict, Tuple

from .agent import Agent
from .channel import monotonic_ns
from .forks import work

if TYPE_CHECKING:
    from typing import Callable, Iterable

    Reading = Tuple[str, str, int]  # device, quantity, value
    Read = Callable[[], Iterable[Reading]]

# Quantities of an allocator on one device, as in internal/mem/series.go.
ALLOCATED = "allocator.allocated"  # bytes that it has handed out
RESERVED = "allocator.reserved"  # bytes that it holds from the device
ACTIVE = "allocator.active"  # bytes in use, with what waits for another stream
INACTIVE_SPLIT = "allocator.inactive_split"  # bytes of pieces cached beside blocks in use
REQUESTED = "allocator.requested"  # bytes asked of it, before it rounds
RETRIES = "allocator.retries"  # count of requests that needed the cache emptied first
OOMS = "allocator.ooms"  # count of requests that failed
_COUNTS = frozenset((RETRIES, OOMS))

DEFAULT_NS = 100_000_000
SHARE = 0.005  # of one processor
PATIENCE = 3  # failures


class Allocators:
    """The allocators of this process, read at the interval that the environment or the engine asks for."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.reads: Dict[str, Read] = {}  # by framework
        self._failures: Dict[str, int] = {}
        self._ids: Dict[Tuple[str, str, str], int] = {}
        self._pid = -1
        text = os.environ.get("HIGHTIDE_INTERVAL_NS", "")
        self._interval = int(text) if text.isdigit() and int(text) > 0 else DEFAULT_NS
        agent.on_renew.append(self.forget)

    def forget(self) -> None:
        """In a forked child: what a device's runtime gave the parent is not the child's."""
        self._failures, self._ids = {}, {}
        if not self.agent.moving:
            self.reads = {}

    def add(self, framework: str, read: Read) -> None:
        """Read a framework's allocator from now on."""
        self.reads[framework] = read
        if self._pid != os.getpid():
            self._pid = os.getpid()
            _thread.start_new_thread(self._run, ())

    def sample(self) -> None:
        """Read all once and record. One that fails PATIENCE times in a row is read no more."""
        now = monotonic_ns()
        values = []
        for framework, read in list(self.reads.items()):
            try:
                values += [(self.series(framework, device, quantity), value) for device, quantity, value in read()]
                self._failures[framework] = 0
            except Exception as error:
                self.agent.log("could not read the allocator of %s" % framework, error)
                self._failures[framework] = self._failures.get(framework, 0) + 1
                if self._failures[framework] >= PATIENCE:
                    self.reads.pop(framework, None)
        channel = self.agent.ready()
        if values and channel is not None:
            channel.counters(values, now)

    def series(self, framework: str, device: str, quantity: str) -> int:
        """The number of a series in this channel, which is announced at its first reading."""
        key = (framework, device, quantity)
        if key not in self._ids:
            self._ids[key] = len(self._ids) + 1
            self.agent.record(
                {"type": "series", "id": self._ids[key], "name": quantity, "framework": framework, "device": device,
                 "unit": "count" if quantity in _COUNTS or quantity.startswith("entered.") else "bytes"}
            )  # fmt: skip
        return self._ids[key]

    def _run(self) -> None:
        while self.reads:
            before = thread_time_ns()
            with work:
                self.sample()
            cost = thread_time_ns() - before
            self.agent.cpu_ns += cost
            channel = self.agent.channel
            interval = (channel.interval_ns() if channel is not None else 0) or self._interval
            sleep(max(interval, int(cost / SHARE)) / 1e9)
        self._pid = -1
