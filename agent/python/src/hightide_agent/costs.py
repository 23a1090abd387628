"""What the search for growth may cost: a share of the processor's time, a larger one where memory does rise.

    memory at the engine's first request ─▶ since then, has it risen by what a report tells? ─▶ the share
    scans and looks so far, and the next ─▶ within the share? ─▶ it may begin

The engine asks on the first suspicion, and a warm-up is suspicious, too. Most programs do not grow: they pay SHARE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Optional, Tuple

from . import resident

if TYPE_CHECKING:
    Held = Callable[[], Tuple[int, int]]  # bytes that devices' allocators hold: allocated, reserved

SHARE = 0.001  # of the processor's time
SHARE_RISING = 0.01  # of it, where memory rises; and
BURST_NS = 150_000_000  # besides, for the scans that it takes to see a container grow
RISEN = 4 << 20  # bytes since the engine's first request, and at least
RISEN_PART = 100  # one part in so many of what was held
MOVED = 1 << 20  # bytes since the last look through the heap
OF_SHARED = 2  # a part of what a forked child shares with its parent, by which it has grown
SCAN_NS = 10_000_000  # that the first scan is taken to cost
LOOK_NS = 200_000_000  # and the first look


class Costs:
    """What was spent in one process, and how its memory has changed."""

    def __init__(self, device: Callable[[], Optional[Held]], clock: Callable[[], int]) -> None:
        self._device = device
        self._clock = clock  # ns of processor time of what is slowed down
        self.scans = self.looks = 0  # ns of it that they took
        self._scan, self._look = SCAN_NS, LOOK_NS  # what the last one cost
        self._first: Optional[Tuple[int, int]] = None  # memory at the first request
        self._looked: Optional[Tuple[int, int]] = None  # memory at the last look

    def asked(self) -> None:
        """The engine has asked for a scan."""
        if self._first is None:
            self._first = self._memory()

    def scanned(self, cost: int) -> None:
        """A scan has cost so many ns."""
        self.scans += cost
        self._scan = cost

    def looked(self, cost: int) -> None:
        """A look through the heap has cost so many ns."""
        self.looks += cost
        self._look = cost
        self._looked = self._memory()

    def rises(self) -> bool:
        """Whether memory has risen since the first request by what a report would tell."""
        if self._first is None:
            return False
        return any(now - then > max(RISEN, then // RISEN_PART) for now, then in zip(self._memory(), self._first))

    def few_scans(self) -> bool:
        """Whether scans have cost no more so far than it takes to see a container grow."""
        return self.scans <= BURST_NS

    def affords_scan(self, asked: bool) -> bool:
        """Whether a scan may begin now. `asked`: the engine asks for it."""
        spent, time = self.scans + self._scan, self._clock()
        if spent + self.looks <= SHARE * time:
            return True
        return asked and self.rises() and spent <= SHARE_RISING * time + BURST_NS

    def affords_look(self) -> bool:
        """Whether a look through the heap may begin now: in any case where memory has risen, and since the last one.

        A look writes to all objects. In a forked child each page that it shares with its parent is copied then.
        """
        if resident.rss() - resident.at_fork < resident.at_fork // OF_SHARED:
            return False
        if self.scans + self.looks + self._look <= SHARE * self._clock():
            return True
        before = self._looked or self._first
        return self.rises() and any(now - then > MOVED for now, then in zip(self._memory(), before or (0, 0)))

    def _memory(self) -> Tuple[int, int]:
        """Bytes that are resident, and that devices hold; -1 where not known."""
        device = self._device()
        return resident.rss(), -1 if device is None else device()[0]
