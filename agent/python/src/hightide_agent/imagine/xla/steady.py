"""The peak of XLA's allocator, what it may take at most, and the end of a training whose peak is known.

Device.memory_stats at each step's end: peak_bytes_in_use ─▶ allocated     peak_pool_bytes ─▶ reserved
                                        bytes_limit ─▶ three quarters of a device, unless the program says otherwise
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any, List, Tuple

from ... import control, oom
from ...tracker import NONE, STEP
from ...training import Training
from ..ledger import Ledger
from ..peaks import Peaks
from .calls import Calls


def install(training: Training, ledger: Ledger, calls: Calls) -> None:
    """Watch the peak, and end the training when that was asked for."""
    steady = Steady(training, ledger, calls)
    training.at_step_end(steady.step_ended)
    atexit.register(steady.program_ended, os.getpid())  # before JAX gives its devices back, which it does at exit, too


class Steady:
    """The peaks of all devices of the process and the decision to end."""

    def __init__(self, training: Training, ledger: Ledger, calls: Calls) -> None:
        self.agent = training.agent
        self.tracker = training.tracker
        self.ledger = ledger
        self.calls = calls
        self.peaks = Peaks(training.agent)
        self.stop = control.Stop(training.agent)
        self._said = False  # how JAX takes memory
        self._ended = False
        self.tracker.reads_device = True  # no time is measured
        training.agent.on_renew.append(self._forget)

    def _forget(self) -> None:
        self._said = False
        self.calls.held.forget()

    def step_ended(self, step: int) -> None:
        """Look at all devices; end the training if it is time."""
        if self._ended:
            return
        self._look(STEP, step - 1)
        self.ledger.flush()
        if not self.peaks.limit:
            return
        if self.peaks.auto and self.peaks.steady(step):
            self._end(step, "steady")
        elif step >= self.peaks.limit:
            if self.peaks.auto:
                self._still_rising(step)
            self._end(step, "steps")

    def program_ended(self, pid: int) -> None:
        """The script came to its end before we ended it."""
        if not self._ended and os.getpid() == pid:
            self._look(NONE, self.tracker.steps_now())
            uncaught = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
            short = uncaught is not None and oom.classify(uncaught) is not None
            self._told(self._unread() or short)

    def _end(self, step: int, reason: str) -> None:
        self._ended = True
        self._told(self._unread())
        self.stop.now(step, reason)

    def _unread(self) -> bool:
        """Say so where memory ran out and the program has read nothing that came of it: it sees no error, then."""
        error = self.calls.failed()
        if error is not None:
            oom.notice(self.agent, error, self.tracker.current_step())
            self.agent.fact("jax.unread_error", type(error).__name__)
        return error is not None

    def _told(self, short: bool) -> None:
        """Say what held the peak; `short`: the program ends for lack of memory."""
        try:
            self.calls.held.tell(short)
        except Exception as error:
            self.agent.log("could not tell what held the peak", error)

    def _still_rising(self, step: int) -> None:
        text = "the peak rose last in step %d of %d: later steps may take more" % (self.peaks.rose(), step)
        self.agent.record({"type": "not_reached", "what": "steady peak", "text": text})

    def _look(self, phase: int, step: int) -> None:
        try:
            for device in self._all():
                stats = device.memory_stats() or {}
                marks = stats.get("peak_bytes_in_use", 0), _taken(stats)
                peak = self.peaks.saw(device.local_hardware_id or 0, marks, phase, step)
                if peak is not None and stats.get("bytes_limit", 0) > 0:
                    peak.limit = stats["bytes_limit"]
            self.peaks.tell()
        except Exception as error:
            self.agent.log("could not look at the peak", error)

    def _all(self) -> List[Any]:
        devices = self.calls.held.devices()
        if devices and not self._said:
            self._said = True
            self.agent.record({"type": "condition", "name": "preallocation", "value": _preallocation()})
        return devices


def _taken(stats: Any) -> int:
    """Most that the allocator took from the device; a version that does not tell has taken all that it may."""
    return int(stats.get("peak_pool_bytes", stats.get("pool_bytes", stats.get("bytes_limit", 0))))


def _preallocation() -> str:
    """What JAX's variables say of how it takes memory."""
    allocator = os.environ.get("XLA_PYTHON_CLIENT_ALLOCATOR", "default").lower()
    if allocator in ("platform", "cuda_async"):
        return "allocator %s" % allocator
    if os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE", "true").lower() in ("false", "0"):
        return "none: it grows"
    fraction, found = _fraction()
    return "%s %% of the memory at the start%s" % (fraction, found)


def _fraction() -> Tuple[str, str]:
    text = os.environ.get("XLA_PYTHON_CLIENT_MEM_FRACTION", os.environ.get("XLA_CLIENT_MEM_FRACTION", ""))
    try:
        return "%g" % (100 * float(text)), ", as XLA_PYTHON_CLIENT_MEM_FRACTION says"
    except ValueError:
        return "75", ", which is JAX's default"
