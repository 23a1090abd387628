"""The peak of a framework whose allocator keeps marks of its own, and the end of a training whose peak is known.

    each step's end   ─▶ Marks.read: what the allocator says of each device ─▶ Peaks ─▶ steady? ─▶ SystemExit(0)
    the program's end ─▶ the same, once more

JAX and TensorFlow each say how their marks are read and what held the peak.
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import Iterable, NamedTuple, Optional

from .. import control, oom, traces
from ..tracker import NONE, STEP
from ..training import Training
from .goals import Goals
from .ledger import Ledger
from .peaks import Peaks


class Mark(NamedTuple):
    """What an allocator says of one device, in bytes."""

    device: int
    held: int  # in use now
    allocated: int  # most that was in use
    reserved: Optional[int]  # most that it took of the device; None: it does not tell
    limit: Optional[int]  # what it may take at most; None: it has no limit


class Marks:
    """The peaks of all devices of the process and the decision to end."""

    framework = ""  # as frameworks are called by their adapters

    def __init__(self, training: Training, ledger: Ledger, goals: Goals) -> None:
        self.agent = training.agent
        self.goals = goals
        self.tracker = training.tracker
        self.ledger = ledger
        self.peaks = Peaks(training.agent)
        self.stop = control.Stop(training.agent)
        self._said = False  # how the framework takes memory
        self._ended = False

    def install(self, training: Training) -> None:
        """Watch the peak, and end the training when that was asked for."""
        self.tracker.reads_device = True  # no time is measured
        self.agent.on_renew.append(self.forget)
        training.at_step_end(self.step_ended)
        atexit.register(self.program_ended, os.getpid())  # before the framework gives its devices back, at exit, too

    def read(self) -> Iterable[Mark]:
        """The marks of each device that the program has started; asking must not start one."""
        raise NotImplementedError

    def preallocation(self) -> str:
        """How the framework takes memory, as the program has set it."""
        raise NotImplementedError

    def unread(self) -> bool:
        """Say so where memory ran out and the program sees no error; whether that is so."""
        return False

    def tell(self, short: bool) -> None:
        """Say what held the peak; `short`: the program ends for lack of memory."""

    def forget(self) -> None:
        """In a process that was forked."""
        self._said = False

    def step_ended(self, step: int) -> None:
        """Look at all devices; end the training if it is time."""
        if self._ended:
            return
        self._look(STEP, step - 1)
        self.peaks.step_ended()
        self.peaks.shaped(step, traces.reshaped)
        self.ledger.flush()
        if not self.peaks.limit:
            return
        auto, missing = self.peaks.auto, bool(self.goals.missing)
        if auto and self.peaks.steady(step) and not missing:
            self._end(step, "steady")
        elif self.peaks.over(step, missing):
            self._end(step, "steps", rose=auto and not missing)

    def program_ended(self, pid: int) -> None:
        """The script came to its end before we ended it."""
        if not self._ended and os.getpid() == pid:
            self._look(NONE, self.tracker.steps_now())
            uncaught = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
            short = uncaught is not None and oom.classify(uncaught) is not None
            self._told(self.unread() or short)

    def _end(self, step: int, reason: str, rose: bool = False) -> None:
        self._ended = True
        left_open = self.peaks.open_end(step, rose)
        if left_open is not None:
            self.agent.record(left_open)
        self.goals.tell_missing()
        self._told(self.unread())
        self.stop.now(step, reason)

    def _told(self, short: bool) -> None:
        try:
            self.tell(short)
        except Exception as error:
            self.agent.log("could not tell what held the peak", error)

    def _look(self, phase: int, step: int) -> None:
        try:
            for mark in self.read():
                if not self._said:
                    self._said = True
                    self.agent.record({"type": "condition", "name": "preallocation", "value": self.preallocation()})
                peak = self.peaks.saw(mark.device, (mark.allocated, mark.reserved), mark.held, phase, step)
                if peak is not None:
                    peak.limit, peak.framework = mark.limit, self.framework
            self.peaks.tell()
        except Exception as error:
            self.agent.log("could not look at the peak", error)
