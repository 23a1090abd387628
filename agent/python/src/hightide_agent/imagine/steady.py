"""The peak, and when it is known: the training ends once three optimizer steps brought no higher one.

each edge of a phase ─▶ Peaks: allocated, reserved; in which phase and step they rose
each step's end ─▶ owners are looked at ─▶ are all ranks steady, the goals reached? ─▶ snapshot, records, SystemExit(0)
"""

from __future__ import annotations

import sys
from time import time_ns
from typing import Any, Dict, List, Tuple

from .. import control
from ..places import caller
from ..tracker import BACKWARD, EVALUATION, NONE, STEP
from ..training import Training
from . import breakdown
from .coverage import Coverage, trains
from .ledger import Ledger
from .peaks import PHASES, Pair, Peaks
from .reach import Reach
from .together import Together

MAX_EDGES = 200_000


def install(training: Training, ledger: Ledger, seen: Coverage, parts: Any, reach: Reach) -> None:
    """Watch the peaks, and end the training when that was asked for."""
    steady = Steady(training, ledger, seen, parts, reach)
    parts.cuda.ring_bytes *= 4
    parts.cuda.each_step = True
    parts.torch.cuda._lazy_call(steady.started)
    training.at_step_end(steady.step_ended)
    training.agent.at_end.insert(0, steady.program_ended)
    training.at_ready.append(steady.ready)
    training.trains = lambda: trains(parts.torch)


class Steady:
    """The peaks of all devices of the process and the decision to end."""

    def __init__(self, training: Training, ledger: Ledger, seen: Coverage, parts: Any, reach: Reach) -> None:
        self.agent = agent = training.agent
        self.reach = reach
        self.seen = seen
        self.ledger = ledger
        self.parts = parts
        self.tracker = training.tracker
        self.cuda = parts.cuda
        self.peaks = Peaks(agent)
        self.edges: List[Tuple[int, int, int]] = [(time_ns() // 1000, NONE, 0)]  # (us, phase from then on, step)
        self.lines: Dict[int, Tuple[str, int, str]] = {}  # where phases were entered last
        self.live = False
        self._ended = False
        self._reported: Dict[int, Pair] = {}  # the peaks whose breakdown was told
        self._done = 0
        self.together = Together(agent, parts.torch)
        self.stop = control.Stop(agent)

    def started(self) -> None:
        """CUDA has started: look at the allocator at each edge from here on."""
        self.live = True
        self.tracker.device, self.tracker.reads_device = self.at_edge, True  # no time is measured
        reset = self.parts.torch._C._cuda_resetPeakMemoryStats

        def _cuda_resetPeakMemoryStats(device: int) -> Any:
            self._look(device, self._inner())
            return reset(device)

        self.parts.torch._C._cuda_resetPeakMemoryStats = _cuda_resetPeakMemoryStats

    def at_edge(self) -> Tuple[int, int]:
        """Called by the tracker at each edge, when its stack shows what comes; gives (allocated, reserved)."""
        try:
            device = self.parts.torch._C._cuda_getDevice()
            stats = self._look(device, self._passed())
            inner = self._inner()
            if inner == BACKWARD and inner != self.edges[-1][1]:  # its threads run no line of the script
                self.lines[BACKWARD] = caller(sys._getframe(1))
            if len(self.edges) < MAX_EDGES:
                self.edges.append((time_ns() // 1000, inner, self.tracker.steps))
            return stats["allocated_bytes"]["all"]["current"], stats["reserved_bytes"]["all"]["current"]
        except Exception as error:
            self.agent.log("could not look at the peak", error)
            return -1, -1

    def step_ended(self, step: int) -> None:
        """Look at all devices; end the training if it is time. On the training thread."""
        if self._ended:
            return
        if self.live:
            for device in range(self.parts.torch._C._cuda_getDeviceCount()):
                self._look(device, self._passed())
            self.peaks.tell()
            self.peaks.step_ended()
        self._done = step
        self.ledger.flush()
        auto = self.peaks.auto
        if not self.peaks.limit:
            return
        missing = bool(self.reach.missing())
        if auto and self.together.all_of_us(step, self.peaks.steady(step) and not missing):
            self._end(step, "steady")
        elif self.peaks.over(step, missing):
            self._end(step, "steps", rose=auto and not missing)

    def ready(self) -> None:
        """A server has all its memory. It is told now what the peak was made of: a parent may kill this process."""
        self._report()
        self._ended = False

    def program_ended(self) -> None:
        """The script came to its end before we ended it."""
        if self.live and not self._ended and not self._done and not self.tracker.steps_now():
            self.seen.untrained(self.parts.torch)
        self._report()

    def _end(self, step: int, reason: str, rose: bool = False) -> None:
        self._report()
        left_open = self.peaks.open_end(step, rose)
        if left_open is not None:
            self.agent.record(left_open)
        self.seen.report()
        self.ledger.flush()
        self.stop.now(step, reason)

    def _report(self) -> None:
        if self._ended or not self.live:
            return
        self._ended = True
        try:
            for device in range(self.parts.torch._C._cuda_getDeviceCount()):
                self._look(device, self._passed())
            self.peaks.tell()
            now = {device: (peak.allocated, peak.reserved) for device, peak in self.peaks.of.items()}
            if now == self._reported:  # the server has taken no more since
                return
            self._reported = now
            snapshot = self.cuda.snapshot("exit") if self.peaks.of and not self.cuda.wanted.never else None
            self.cuda.wanted.at_exit = False
            if snapshot is not None:
                for record in breakdown.at_peak(snapshot, self.cuda.owners, list(self.peaks.of.values()), self.edges):
                    self._line(record)
                    self.agent.record(record)
        except Exception as error:
            self.agent.log("could not report the peak", error)

    def _line(self, record: Dict[str, Any]) -> None:
        """Where the history has no line for the peak: that of the phase it fell into. The allocator's clock and ours
        may be apart by more than a phase is long; what runs no line of the script is most often backward's thread."""
        line = self.lines.get(PHASES.index(record.get("phase", "")), self.lines.get(BACKWARD))
        if line is not None and "file" not in record:
            record["file"], record["line"], record["function"] = line

    def _inner(self) -> int:
        stack = self.tracker.stack
        for phase, _ in reversed(stack):
            if phase in range(2, 8):
                return int(phase)
        return STEP if stack else NONE

    def _passed(self) -> int:
        """The phase of what has run since the last edge; what follows an evaluation's forward pass, as where its
        outputs are put together, is still the evaluation."""
        phase, step = self.edges[-1][1:]
        if phase == STEP and len(self.edges) > 1 and self.edges[-2][1:] == (EVALUATION, step):
            return EVALUATION
        return phase

    def _look(self, device: int, phase: int) -> Any:
        """Read one device's marks; what has risen since the last look rose in `phase`."""
        stats = self.parts.torch._C._cuda_memoryStats(device)
        marks = stats["allocated_bytes"]["all"]["peak"], stats["reserved_bytes"]["all"]["peak"]
        self.peaks.saw(device, marks, stats["allocated_bytes"]["all"]["current"], phase, self._step())
        return stats

    def _step(self) -> int:
        """Steps completed before what this look covers: an edge knows them, or else the end of the last step."""
        return max(self.edges[-1][2], self._done)
