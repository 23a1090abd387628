"""The peak, and when it is known: the training ends once three optimizer steps brought no higher one.

each edge of a phase ─▶ Peaks: allocated, reserved; in which phase and step they rose
each step's end ─▶ owners are looked at ─▶ are all ranks steady, the goals reached? ─▶ snapshot, records, SystemExit(0)

Steps cost little, so there are ENOUGH of them where they are short: a sequence grows at step 20. A peak that rose
after it had been steady may do so again: then it must be steady for half as long again as it was before.
"""

from __future__ import annotations

import os
import sys
from time import monotonic_ns, process_time, time_ns
from typing import Any, Dict, List, Optional, Tuple

from .. import control
from ..places import caller
from ..tracker import BACKWARD, EVALUATION, NONE, STEP
from ..training import Training
from . import breakdown
from .breakdown import PHASES
from .coverage import Coverage, trains
from .ledger import Ledger
from .reach import Reach
from .together import Together

STEADY = 3  # optimizer steps at whose ends the high-water marks were the same
ENOUGH, ENOUGH_SECONDS = 50, 1.0  # steps, or seconds of the processor, before a steady peak is believed
WAITED_SECONDS = 20.0  # after which a peak that rose late, and is steady, is waited for no longer
MAX_STEPS = 200  # under `auto`: a training that never gets steady, as with ever longer batches
FAR_STEPS = 20_000  # the same, where a goal is not reached
MAX_EDGES = 200_000


class Peak:
    """High-water marks of one device."""

    def __init__(self, device: int) -> None:
        self.device = device
        self.allocated = self.reserved = 0
        self.phase, self.step, self.time_ns = NONE, 0, 0
        self.rose = 0  # the step in which one of them rose last
        self.told = (0, 0)


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
        self.peaks: Dict[int, Peak] = {}
        self.edges: List[Tuple[int, int, int]] = [(time_ns() // 1000, NONE, 0)]  # (us, phase from then on, step)
        self.lines: Dict[int, Tuple[str, int, str]] = {}  # where phases were entered last
        self.live = False
        self._ended = False
        self._reported: Dict[int, Tuple[int, int]] = {}  # the peaks whose breakdown was told
        self._done = 0
        self._gap = 0  # most steps between two rises, of those after the first steps
        self._began: Optional[float] = None  # processor time at the end of the first step
        text = os.environ.get("HIGHTIDE_IMAGINE_STEPS", "auto")
        self.auto = text == "auto"
        self.limit = int(text) if text.isdigit() else (MAX_STEPS if self.auto else 0)
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
            self._tell()
        self._done = step
        self.ledger.flush()
        if not self.limit:
            return
        missing = self.reach.missing()
        if self.auto and self.together.all_of_us(step, self._steady(step) and not missing):
            self._end(step, "steady")
        elif step >= (FAR_STEPS if self.auto and missing else self.limit):
            if self.auto and not missing:
                self.seen.still_rising(self._rose(), step)
            self._end(step, "steps")

    def _rose(self) -> int:
        return max([p.rose for p in self.peaks.values()] or [0])

    def _steady(self, step: int) -> bool:
        """Whether the peak is believed to be known after this step."""
        if self._began is None:
            self._began = process_time()
        quiet = step - self._rose()
        if not self.peaks or quiet < STEADY - 1 or step < STEADY:
            return False
        spent = process_time() - self._began
        if step < ENOUGH and spent < ENOUGH_SECONDS:
            return False
        return 2 * quiet >= 3 * self._gap or spent >= WAITED_SECONDS

    def ready(self) -> None:
        """A server has all its memory. It is told now what the peak was made of: a parent may kill this process."""
        self._report()
        self._ended = False

    def program_ended(self) -> None:
        """The script came to its end before we ended it."""
        if self.live and not self._ended and not self._done and not self.tracker.steps_now():
            self.seen.untrained(self.parts.torch)
        self._report()

    def _end(self, step: int, reason: str) -> None:
        self._report()
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
            self._tell()
            now = {device: (peak.allocated, peak.reserved) for device, peak in self.peaks.items()}
            if now == self._reported:  # the server has taken no more since
                return
            self._reported = now
            snapshot = self.cuda.snapshot("exit") if self.peaks and not self.cuda.wanted.never else None
            self.cuda.wanted.at_exit = False
            if snapshot is not None:
                for record in breakdown.at_peak(snapshot, self.cuda.owners, list(self.peaks.values()), self.edges):
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
        allocated, reserved = stats["allocated_bytes"]["all"]["peak"], stats["reserved_bytes"]["all"]["peak"]
        peak = self.peaks.get(device)
        if peak is None:
            if not reserved:
                return stats
            peak = self.peaks[device] = Peak(device)
        if allocated > peak.allocated:
            peak.allocated, peak.phase, peak.step, peak.time_ns = allocated, phase, self._step(), monotonic_ns()
            self._risen(peak)
        if reserved > peak.reserved:
            peak.reserved = reserved
            self._risen(peak)
        return stats

    def _risen(self, peak: Peak) -> None:
        now = self._step() + 1
        if now > STEADY:
            self._gap = max(self._gap, now - peak.rose)
        peak.rose = now

    def _step(self) -> int:
        """Steps completed before what this look covers: an edge knows them, or else the end of the last step."""
        return max(self.edges[-1][2], self._done)

    def _tell(self) -> None:
        for peak in self.peaks.values():
            if (peak.allocated, peak.reserved) != peak.told:
                peak.told = (peak.allocated, peak.reserved)
                record = {"type": "peak", "device": "cuda:%d" % peak.device, "allocated_bytes": peak.allocated,
                          "reserved_bytes": peak.reserved, "step": peak.step, "time_ns": peak.time_ns}  # fmt: skip
                if PHASES[peak.phase]:
                    record["phase"] = PHASES[peak.phase]
                self.agent.record(record)
