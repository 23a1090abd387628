"""Phases and steps: what the training is doing, told at each edge. Knows no framework.

    enter(FORWARD) … leave() ─▶ edge records, and the word {step, phase, module} for the C libraries

Phases nest, the innermost is in the word. Only one thread is followed: the one that trains (the main
thread until another one steps an optimizer). A step spans from the end of one optimizer step to the
end of the next; step_ended is called by the adapter, which knows the optimizers.

An edge costs 1 to 3 microseconds, most of it the reading of the resident set. Where steps are so
short that this would be more than SHARE of them, memory is read at the edges of every nth step only.
"""

from __future__ import annotations

from _thread import get_ident, get_native_id
from time import monotonic_ns
from typing import Any, Callable, Optional

from . import resident
from .agent import Agent
from .channel import heap_word

NONE, STEP, DATA, FORWARD, BACKWARD, OPTIMIZER, EVALUATION, CHECKPOINT, MODULE, USER = range(10)
SKIPPED = 1  # flag of a step: a scaler found inf or nan
SHARE = 0.004  # of the time of a step that reading memory at edges may take
READ_NS = 1500  # what one reading costs, with the parsing
LEAD_PATIENCE = 50  # steps of other optimizers after which the leading one counts as retired

_Device = Callable[[], "tuple[int, int]"]


class Tracker:
    """The phase stack and step counter of one process."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.at_step_end: list[Callable[[int], None]] = []  # called with the steps completed
        self.device: Optional[_Device] = None  # (allocated, reserved) where a device is live
        self.micro_steps = 0
        self.forget()
        agent.on_renew.append(self.forget)

    def forget(self) -> None:
        """Begin at nothing: at the start, and in a forked child, which takes no steps of ours."""
        resident.forget()
        self.stack: list[tuple[int, int]] = []
        self.steps = 0
        self.owner = get_ident()
        self.tid = get_native_id()
        self.last_end = 0
        self.rss = -1
        self.reading = True  # memory is read at the edges of this step
        self.typical_step_ns = 0  # an exponential mean; 0: not known yet
        self._every = 1
        self._edges = 0
        self._heap: Optional[Any] = None
        self._heap_asked = False

    def claim(self) -> None:
        """Follow the calling thread from here on: it is the one that trains."""
        me = get_ident()
        if me != self.owner:
            self.owner, self.tid = me, get_native_id()
            self.stack = []

    def enter(self, phase: int, module: int = 0) -> bool:
        """Enter a phase (or module); True where it was recorded and leave() must follow."""
        if get_ident() != self.owner:
            return False
        if not self.stack and phase != STEP:
            self._begin_step()
        self.stack.append((phase, module))
        self._edge(phase, 0, module)
        return True

    def leave(self, phase: int, module: int = 0) -> None:
        """Leave a phase, and with it any inner one that an exception kept from being left."""
        if get_ident() != self.owner or (phase, module) not in self.stack:
            return
        while self.stack:
            inner = self.stack.pop()
            self._edge(inner[0], 1, inner[1])
            if inner == (phase, module):
                break

    def inside(self, phase: int) -> bool:
        """Whether a phase has been entered and not left."""
        return any(entry[0] == phase for entry in self.stack)

    def step_ended(self, flags: int = 0) -> None:
        """Count a step; called right after the leading optimizer's own step."""
        channel = self.agent.ready()
        now = monotonic_ns()
        while self.stack:  # optimizers are stepped inside no other phase; a closure's are left by now
            inner = self.stack.pop()
            if inner[0] != STEP:
                self._edge(inner[0], 1, inner[1])
        self.steps += 1
        duration = now - self.last_end if self.last_end else 0
        self.rss = resident.rss() if self.reading else -1
        allocated, reserved = self.device() if self.device is not None else (-1, -1)
        if channel is not None:
            channel.edge(STEP, 1, 0, self.tid, self.steps - 1, self.rss, allocated, reserved, now)
            channel.step(self.steps, duration, self.rss, self.micro_steps, flags, allocated, now)
        self._pace(duration)
        self.last_end, self.micro_steps = now, 0
        for callback in self.at_step_end:
            callback(self.steps)
        self._begin_step()

    def _begin_step(self) -> None:
        if not self._heap_asked:
            self._heap_asked, self._heap = True, heap_word()
        self.reading = self.steps % self._every == 0
        self.stack.append((STEP, 0))
        self._edge(STEP, 0, 0)

    def _pace(self, duration: int) -> None:
        """Spread the reading of memory so that it stays below SHARE of the time."""
        if duration and self._edges:
            before = self.typical_step_ns or duration
            self.typical_step_ns = max(1, before + (duration - before) // 8)
            wanted = self._edges * READ_NS / (self.typical_step_ns * SHARE)
            self._every = min(64, max(1, int(wanted + 0.5)))
        self._edges = 0

    def _edge(self, phase: int, leave: int, module: int) -> None:
        channel = self.agent.ready()
        if channel is None:
            return
        stack = self.stack
        inner = stack[-1] if stack else (NONE, 0)
        word = self.steps << 24 | (inner[1] & 0xFFFF) << 8 | inner[0]
        channel.words[32] = word
        if self._heap is not None:
            self._heap[0] = word
        self._edges += 1
        rss = resident.rss() if self.reading else -1
        if self.device is None:
            allocated = reserved = -1
        else:
            allocated, reserved = self.device()
        channel.edge(phase, leave, module, self.tid, self.steps, rss, allocated, reserved, monotonic_ns())
