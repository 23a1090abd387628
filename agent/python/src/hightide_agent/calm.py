"""Steps in which nothing is due: counted, in as few lines and objects as can be.

    a backward pass ─▶ backwards += 1        an optimizer's step ─▶ count() ─▶ (time, backwards) on a list

After a computation every function, dictionary and page that Python touches is a miss of the processor's caches: a
step's end that goes through the tracker takes some 150 microseconds then, count() a tenth of that. The tracker tells
what is on the list when it next looks, at the latest after WHILE_NS.
"""

from __future__ import annotations

from time import monotonic_ns
from typing import Any, List, Tuple

WHILE_NS = 200_000_000


class Calm:
    """The count since the tracker last looked. With `lead` 0 it is not calm, and the tracker sees every step."""

    __slots__ = ("backwards", "ends", "heap", "inside", "lead", "room", "until", "word")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin at nothing."""
        self.lead = 0  # id of the optimizer whose steps are counted
        self.backwards = 0  # passes in this step
        self.inside = False  # of a backward pass
        self.ends: List[Tuple[int, int]] = []  # of steps counted: when, and their backward passes
        self.heap: Any = None  # the heap library's word
        self.word = self.room = self.until = 0

    def begin(self, lead: int, room: int, steps: int, heap: Any) -> None:
        """Be calm for `room` steps after `steps`."""
        self.room, self.until = room, monotonic_ns() + WHILE_NS
        self.word, self.heap = steps << 24, heap
        self.lead = lead

    def count(self) -> bool:
        """Count a step that ends now; False where the tracker must see it."""
        now = monotonic_ns()
        if now >= self.until or len(self.ends) >= self.room:
            return False
        self.ends.append((now, self.backwards))
        self.backwards = 0
        if self.heap is not None:
            self.word += 1 << 24
            self.heap[0] = self.word
        return True

    def take(self) -> List[Tuple[int, int]]:
        """What was counted; the list begins anew."""
        ends, self.ends = self.ends, []
        return ends
