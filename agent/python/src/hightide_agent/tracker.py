"""Phases and steps: what the training is doing, told at each edge. Knows no framework.

    enter(FORWARD) … leave(FORWARD) ─▶ edge records, and the word {step, phase, module} for the C libraries

Phases nest, the innermost is in the word. Only one thread is followed: the one that trains (the main
thread until another one steps an optimizer). A step spans from the end of one optimizer step to the
end of the next; steps.py knows the optimizers and calls step_ended.

An edge costs about 4 microseconds in a tight loop and up to 12 after a computation that has taken the
processor's caches. Half of it is the reading of the resident set. Where steps are so short that this would
be more than SHARE of them, only every nth step is recorded in full. The others are counted, and the
adapter's hooks stay out of their way (`recording` is False). What is recorded is always exact. A step in which
nothing at all is due is only counted (quick.py).
"""

from __future__ import annotations

from _thread import get_ident, get_native_id
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import resident
from .agent import Agent
from .channel import heap_word, monotonic_ns
from .modules import Modules
from .quick import QuickSteps

NONE, STEP, DATA, FORWARD, BACKWARD, OPTIMIZER, EVALUATION, CHECKPOINT, MODULE, USER = range(10)
SKIPPED = 1  # flag of a step: a scaler found inf or nan
# Of the time of all steps, without waits for a processor, that edges, and putting hooks on for them, may see of
# themselves: side by side with a program that is not recorded they cost five times that, as they drive others' data
# from the caches.
SHARE = 0.0004
HOOKING_NS = 5000  # what an edge costs outside of its own clock: wrappers, torch's slower call path
EDGE_NS = 100_000  # what an edge counts for at most: where it took longer, others had the processor meanwhile
ALWAYS_STEPS = 8  # the first steps are all recorded in full
MAX_EVERY = 256
NEVER = 1 << 62  # of what waits for a step: none
WINDOW = 256  # edges after which a step that does not end is looked at: an evaluation, an inference loop
WINDOW_SHARE = 0.02  # of its time that edges may take


if TYPE_CHECKING:
    _Device = Callable[[], "tuple[int, int]"]

    # Called at a step's end with the steps completed. The answer is the step at whose end to call again at the
    # latest, NEVER where only the engine's requests (or nothing) could ask for it, and None for the next one.
    AtStepEnd = Callable[[int], Optional[int]]


class Tracker:
    """The phase stack and step counter of one process."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.at_step_end: list[AtStepEnd] = []
        self.at_recording: list[Callable[[bool], None]] = []  # called when `recording` changes
        self.device: Optional[_Device] = None  # (allocated, reserved) where a device is live
        self.recording = True
        self.told = True  # phases are written down, not only followed; False in a server, which trains nothing
        self.modules = Modules(agent)
        self.quick = QuickSteps()
        self.always_see = False  # every step must be seen
        self.reads_device = False  # at each step's end, not only of those that are recorded in full
        self.forget()
        agent.on_renew.append(self.forget)

    def forget(self) -> None:
        """Begin at nothing: at the start, and in a forked child, which takes no steps of ours."""
        resident.forget()
        self.quick.forget()
        self.stack: list[tuple[int, int]] = []
        self.steps = 0
        self.owner = get_ident()
        self.tid = get_native_id()
        self.rss = -1  # at the end of the last recorded step
        self.typical_step_ns = 0  # an exponential mean, without waits for a processor; 0: not known yet
        self.every = 1  # one in so many steps is recorded in full
        self._spent = 0  # ns in edges since the step began
        self._switched = 0  # ns of putting hooks on and taking them off, since the last recorded step
        self._entered = self._window_from = self._window_spent = 0
        self._heap: Optional[Any] = None
        self._heap_asked = False
        self._record(True)

    def claim(self) -> None:
        """Follow the calling thread from here on: it is the one that trains."""
        me = get_ident()
        if me != self.owner:
            self.owner, self.tid = me, get_native_id()
            self.stack = []

    def resume(self) -> None:
        """Record the rest of this step in full: something rare, as an evaluation, is about to happen."""
        if not self.recording:
            self.quick.lead = 0
            self._settle()
            self._record(True)
            self._begin_step()

    def enter(self, phase: int, module: int = 0) -> bool:
        """Enter a phase (or module); True where it was recorded and leave() must follow."""
        if not self.recording or get_ident() != self.owner:
            return False
        start = monotonic_ns()
        if not self.stack:
            self._begin_step()
        if module:
            self.modules.tell()
        self.stack.append((phase, module))
        self._edge(phase, 0, module, start)
        took = monotonic_ns() - start
        self._spent += (took if took < EDGE_NS else EDGE_NS) + HOOKING_NS
        self._entered += 1
        return not (self._entered >= WINDOW and self._too_dense(start))

    def leave(self, phase: int, module: int = 0) -> None:
        """Leave a phase, and with it any inner one that an exception kept from being left."""
        if get_ident() != self.owner or (phase, module) not in self.stack:
            return
        start = monotonic_ns()
        while self.stack:
            inner = self.stack.pop()
            self._edge(inner[0], 1, inner[1], start)
            if inner == (phase, module):
                break
        took = monotonic_ns() - start
        self._spent += (took if took < EDGE_NS else EDGE_NS) + HOOKING_NS

    def inside(self, phase: int) -> bool:
        """Whether a phase has been entered and not left."""
        return any(entry[0] == phase for entry in self.stack)

    def steps_now(self) -> int:
        """Steps completed, those included that were only counted."""
        return self.steps + self.quick.counted

    def current_step(self) -> int:
        """Steps completed; -1 before the first has begun: a model is being built, or the program trains nothing."""
        done = self.steps_now()
        return done if done or any(self.inside(phase) for phase in (FORWARD, BACKWARD, OPTIMIZER)) else -1

    def step_ended(self, flags: int = 0, lead: int = 0) -> None:
        """See a step; called right after the leading optimizer's own step. `lead`: its id, where the next steps of
        it may be only counted."""
        now = monotonic_ns()
        self.quick.lead = 0
        self._settle()
        recorded = self.recording
        if recorded:
            while self.stack:  # optimizers step inside no other phase; a closure's phases are left by now
                inner = self.stack.pop()
                if inner[0] != STEP:
                    self._edge(inner[0], 1, inner[1], now)
            self.rss = resident.rss()
        self.steps += 1
        self.told = True
        duration = now - self.quick.last if self.quick.last else 0
        channel = self.agent.ready()
        if channel is not None:
            rss = self.rss if recorded else -1
            device = self.device if recorded or self.reads_device else None
            allocated, reserved = device() if device is not None else (-1, -1)
            if recorded:
                channel.edge(STEP, 1, 0, self.tid, self.steps - 1, rss, allocated, reserved, now)
            channel.step(self.steps, duration, rss, self.quick.backwards, flags, allocated, now)
        self.quick.last, self.quick.backwards = now, 0
        if recorded:
            took = monotonic_ns() - now
            self._spent += took if took < EDGE_NS else EDGE_NS
        self._pace(int(duration * channel.running()) if channel is not None else duration, recorded)
        due = self.steps + self.every - self.steps % self.every
        for callback in self.at_step_end:
            try:
                due = min(due, callback(self.steps) or 0)
            except Exception as error:  # what ends the program in good order is none
                self.agent.log("could not look at the end of a step", error)
        if self.recording:
            self._begin_step()
            return
        self._tell(NONE, 0)
        if lead and not self.always_see and due > self.steps + 1:
            self.quick.begin(lead, due - self.steps - 1, self.steps, self.agent, self._heap)

    def _settle(self) -> None:
        """Take in the steps that were only counted."""
        self.agent.ready()  # in a forked child it forgets them
        self.steps += self.quick.counted
        self.quick.counted = 0

    def _begin_step(self) -> None:
        if not self._heap_asked:
            self._heap_asked, self._heap = True, heap_word()
        self.stack.append((STEP, 0))
        self._edge(STEP, 0, 0, monotonic_ns())

    def _pace(self, duration: int, recorded: bool) -> None:
        """Choose the steps to record so that edges stay below SHARE of the time."""
        if duration:
            before = self.typical_step_ns or duration
            self.typical_step_ns = max(1, before + (min(duration, 8 * before) - before) // 8)
        if recorded and self.steps > 1 and self.typical_step_ns:
            wanted = (self._spent + self._switched) / (self.typical_step_ns * SHARE)
            self._switched = 0
            mean = 0.75 * self.every + 0.25 * wanted if self.steps > ALWAYS_STEPS else wanted
            self.every = min(MAX_EVERY, max(1, int(mean + 0.5)))
        self._spent = self._entered = self._window_spent = 0
        wanted_now = self.steps < ALWAYS_STEPS or self.steps % self.every == 0
        if wanted_now != self.recording:
            self._record(wanted_now)

    def _too_dense(self, now: int) -> bool:
        """Stop recording until the next step (or change of mode) where edges take too much of the time."""
        spent, passed = self._spent - self._window_spent, now - self._window_from
        dense = self._window_spent > 0 and spent > WINDOW_SHARE * passed
        self._entered, self._window_from, self._window_spent = 0, now, self._spent
        if dense:
            while self.stack:
                inner = self.stack.pop()
                self._edge(inner[0], 1, inner[1], now)
            self._record(False)
        return dense

    def _record(self, on: bool) -> None:
        start = monotonic_ns()
        self.recording = on
        for callback in self.at_recording:
            callback(on)
        self._switched += monotonic_ns() - start

    def _tell(self, phase: int, module: int) -> None:
        """Publish the word, in our own channel and in the heap library's."""
        word = self.steps << 24 | (module & 0xFFFF) << 8 | phase
        channel = self.agent.ready()
        if channel is not None:
            channel.set_word(word)
        if self._heap is not None:
            self._heap[0] = word

    def _edge(self, phase: int, leave: int, module: int, now: int) -> None:
        channel = self.agent.ready()
        if channel is None:
            return
        inner = self.stack[-1] if self.stack and self.told else (NONE, 0)
        word = self.steps << 24 | (inner[1] & 0xFFFF) << 8 | inner[0]
        channel.words[32] = word
        if self._heap is not None:
            self._heap[0] = word
        allocated = reserved = -1
        if self.device is not None:
            allocated, reserved = self.device()
        if self.told:
            channel.edge(phase, leave, module, self.tid, self.steps, resident.rss(), allocated, reserved, now)
