"""Steps in which nothing is due: told with as few lines and objects as can be.

    a backward pass ─▶ backwards += 1        an optimizer's step ─▶ count() ─▶ a step record

After a computation every function, dictionary and page that Python touches is a miss of the processor's caches. A
step's end that goes through the tracker takes some 150 microseconds then, count() a tenth of that.
"""

from __future__ import annotations

from typing import Any

from .channel import CONTROL_SEQ, monotonic_ns
from .forks import MARKED

WHILE_NS = 1_000_000_000  # after which the tracker sees a step again


class QuickSteps:
    """What was counted since the tracker last saw a step. With `lead` 0 none is: the tracker sees all."""

    __slots__ = (
        "backwards", "channel", "counted", "heap", "inside", "last", "lead", "mark", "requests", "room", "until",
        "word",
    )  # fmt: skip

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin at nothing."""
        self.lead = 0  # id of the optimizer whose steps are counted
        self.backwards = 0  # passes in this step
        self.inside: Any = None  # the frame that called a backward pass, while that runs
        self.counted = self.room = 0  # steps, and how many there may be
        self.last = self.until = 0  # ns: the last step's end, and how long steps may be only counted
        self.word = 0  # of the last step
        self.requests = 0  # number of the engine's requests at the beginning
        self.channel: Any = None
        self.mark: Any = None  # of this process
        self.heap: Any = None  # the heap library's word

    def begin(self, lead: int, room: int, steps: int, agent: Any, heap: Any) -> None:
        """Only count `room` steps after `steps`, the last of which has just ended."""
        self.channel, self.mark, self.heap = agent.channel, agent.mark, heap
        self.room, self.until, self.word = room, self.last + WHILE_NS, steps << 24
        if self.channel is not None:
            self.lead, self.requests = lead, self.channel.control()

    def count(self) -> bool:
        """Tell of a step that ends now; False where the tracker must see it."""
        now = monotonic_ns()
        channel = self.channel
        if now >= self.until or self.counted >= self.room or self.mark[0] != MARKED:
            return False
        if channel.words[CONTROL_SEQ] != self.requests:
            return False
        word = self.word + (1 << 24)
        if not channel.quick_step(word >> 24, now - self.last, self.backwards, now):
            return False
        self.word = word
        self.counted += 1
        self.last, self.backwards = now, 0
        if self.heap is not None:
            self.heap[0] = word
        return True
