"""High-water marks of devices, and when they are believed to be known: the rule is the same for every framework.

An adapter's allocator ─▶ Peaks.saw, at each look ─▶ which step raised a mark last ─▶ steady? ─▶ the training may end

Steps cost little, so there are ENOUGH of them where they are short: a sequence grows at step 20. A peak that rose
after it had been steady may do so again: then it must be steady for half as long again as it was before.
"""

from __future__ import annotations

import os
from time import monotonic_ns, process_time
from typing import Dict, Optional, Tuple

from ..agent import Agent
from ..tracker import NONE

STEADY = 3  # optimizer steps at whose ends the high-water marks were the same
ENOUGH, ENOUGH_SECONDS = 50, 1.0  # steps, or seconds of the processor, before a steady peak is believed
WAITED_SECONDS = 20.0  # after which a peak that rose late, and is steady, is waited for no longer
MAX_STEPS = 200  # under `auto`: a training that never gets steady, as with ever longer batches

Pair = Tuple[int, Optional[int]]  # allocated, reserved

PHASES = ("", "step", "data", "forward", "backward", "optimizer", "evaluation", "checkpoint", "module", "user")


class Peak:
    """High-water marks of one device."""

    def __init__(self, device: int) -> None:
        self.device = device
        self.allocated = 0
        self.reserved: Optional[int] = None  # None: the allocator does not tell
        self.limit: Optional[int] = None  # what the allocator may take at most, where the framework sets that
        self.framework = ""  # whose allocator it is, where another's could be taken for it
        self.phase, self.step, self.time_ns = NONE, 0, 0
        self.rose = 0  # the step in which one of them rose last
        self.told: Pair = (0, None)


class Peaks:
    """Those of all devices of this process, and the steps that were asked for."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.of: Dict[int, Peak] = {}
        text = os.environ.get("HIGHTIDE_IMAGINE_STEPS", "auto")
        self.auto = text == "auto"
        self.limit = int(text) if text.isdigit() else (MAX_STEPS if self.auto else 0)  # 0: to the end
        self._gap = 0  # most steps between two rises, of those after the first steps
        self._began: Optional[float] = None  # processor time at the end of the first step

    def saw(self, device: int, marks: Pair, phase: int, step: int) -> Optional[Peak]:
        """Take in (allocated, reserved) of a device; what has risen since the last look rose in `phase`, after `step`
        completed steps. None while nothing of it is used."""
        allocated, reserved = marks
        peak = self.of.get(device)
        if peak is None:
            if not allocated and not reserved:
                return None
            peak = self.of[device] = Peak(device)
        if allocated > peak.allocated:
            peak.allocated, peak.phase, peak.step, peak.time_ns = allocated, phase, step, monotonic_ns()
            self._risen(peak, step)
        if reserved is not None and reserved > (peak.reserved or 0):
            peak.reserved = reserved
            self._risen(peak, step)
        return peak

    def _risen(self, peak: Peak, step: int) -> None:
        now = step + 1
        if now > STEADY:
            self._gap = max(self._gap, now - peak.rose)
        peak.rose = now

    def rose(self) -> int:
        """The step in which a mark rose last."""
        return max([p.rose for p in self.of.values()] or [0])

    def steady(self, step: int) -> bool:
        """Whether the peak is believed to be known after this step."""
        if self._began is None:
            self._began = process_time()
        quiet = step - self.rose()
        if not self.of or quiet < STEADY - 1 or step < STEADY:
            return False
        spent = process_time() - self._began
        if step < ENOUGH and spent < ENOUGH_SECONDS:
            return False
        return 2 * quiet >= 3 * self._gap or spent >= WAITED_SECONDS

    def tell(self) -> None:
        """Record the marks that are higher than told."""
        for peak in self.of.values():
            if (peak.allocated, peak.reserved) == peak.told:
                continue
            peak.told = (peak.allocated, peak.reserved)
            record = {"type": "peak", "device": "cuda:%d" % peak.device, "allocated_bytes": peak.allocated,
                      "step": peak.step, "time_ns": peak.time_ns}  # fmt: skip
            if peak.reserved is not None:
                record["reserved_bytes"] = peak.reserved
            if peak.framework:
                record["framework"] = peak.framework
            if PHASES[peak.phase]:
                record["phase"] = PHASES[peak.phase]
            if peak.limit is not None:
                record["limit_bytes"] = peak.limit
            self.agent.record(record)
