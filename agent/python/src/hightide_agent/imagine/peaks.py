"""High-water marks of devices, and when they are believed to be known: the rule is the same for every framework.

An adapter's allocator ─▶ Peaks.saw, at each look ─▶ which step raised a mark last ─▶ steady? ─▶ the training may end

Steps cost little, so there are ENOUGH of them where they are short: a sequence grows at step 20. A peak that rose
after it had been steady may do so again: then it must be steady for half as long again as it was before.
"""

from __future__ import annotations

import os
from itertools import accumulate
from time import process_time
from typing import Any, Dict, List, Optional, Tuple

from ..agent import Agent
from ..channel import monotonic_ns
from ..tracker import NONE

STEADY = 3  # optimizer steps at whose ends the high-water marks were the same
ENOUGH, ENOUGH_SECONDS = 50, 1.0  # steps, or seconds of the processor, before a steady peak is believed
SHAPED_SECONDS = 60.0  # after which new shapes are waited for no longer: each may take ten to compile
WAITED_SECONDS = 20.0  # after which a peak that rose late, and is steady, is waited for no longer
RISES = 3  # in each of the last two quarters of the steps, of a peak that grows with the steps
RATED = 20  # steps from which a rate can be told
MAX_STEPS = 200  # under `auto`: a training that never gets steady, as with ever longer batches
FAR_STEPS = 20_000  # in its place, where a goal is not reached

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
        self.held = 0  # allocated now
        self.at_steps: List[Tuple[int, int]] = []  # (allocated, held) as each step ended
        self.told: Pair = (0, None)


class Peaks:
    """Those of all devices of this process, and the steps that were asked for."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.of: Dict[int, Peak] = {}
        text = os.environ.get("HIGHTIDE_IMAGINE_STEPS", "auto")
        self.auto = text == "auto"
        self.limit = int(text) if text.isdigit() else (MAX_STEPS if self.auto else 0)  # 0: to the end
        self._waited = 0  # the last step in which a goal was missing
        self._gap = 0  # most steps between two rises, of those after the first steps
        self._gap_waiting = 0  # what it was then
        self._shapes = self._shaped = 0  # for which functions were traced anew, and the last step in which one was
        self._began: Optional[float] = None  # processor time at the end of the first step

    def saw(self, device: int, marks: Pair, held: int, phase: int, step: int) -> Optional[Peak]:
        """Take in the highest (allocated, reserved) of a device, and what is allocated now; what has risen since the
        last look rose in `phase`, after `step` completed steps. None while nothing of it is used."""
        allocated, reserved = marks
        peak = self.of.get(device)
        if peak is None:
            if not allocated and not reserved:
                return None
            peak = self.of[device] = Peak(device)
        peak.held = held
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

    def step_ended(self) -> None:
        """Note where the marks are, for open_end()."""
        for peak in self.of.values():
            peak.at_steps.append((peak.allocated, peak.held))

    def shaped(self, step: int, shapes: int) -> None:
        """Until the end of a step functions were traced anew for so many shapes: a longer batch may come yet."""
        if shapes != self._shapes:
            self._shapes, self._shaped = shapes, step

    def _new_shapes(self, step: int) -> bool:
        """Whether one of the last steps had a shape that none before it had."""
        return self._shaped > 0 and step - self._shaped < STEADY - 1

    def open_end(self, step: int, rose: bool) -> Optional[Dict[str, Any]]:
        """The record of a training that is ended although later steps may take more; `rose`: also where the peak has
        only not become steady. The rate is that of the peak, else of what is held at the ends of steps."""
        rates = [(_rate([m for m, _ in p.at_steps]), False, p) for p in self.of.values()]
        rates += [(_rate(_kept([h for _, h in p.at_steps]), often=True), True, p) for p in self.of.values()]
        rate, below, peak = max(rates, key=lambda r: (r[0] > 0, not r[1], r[0]), default=(0, False, Peak(0)))
        text = "the peak rose last in step %d of %d: later steps may take more" % (self.rose(), step)
        if self._new_shapes(step):
            rose, text = True, "step %d of %d had a new shape: a longer one may take more" % (self._shaped, step)
        record: Dict[str, Any] = {"type": "not_reached", "what": "steady peak", "text": text}
        if rate:
            record["per_step_bytes"], record["device"] = rate, "cuda:%d" % peak.device
            if below:
                record["below_peak_bytes"] = peak.allocated - peak.held
                record["text"] = "each of the last steps kept more than the one before: later steps may take more"
        return record if rate or rose else None

    def steady(self, step: int) -> bool:
        """Whether the peak is believed to be known after this step."""
        if self._began is None:
            self._began = process_time()
        quiet = step - self.rose()
        if not self.of or quiet < STEADY - 1 or step < STEADY:
            return False
        spent = process_time() - self._began
        if self._new_shapes(step) and spent < SHAPED_SECONDS:
            return False
        if step < ENOUGH and spent < ENOUGH_SECONDS:
            return False
        if step < RATED and spent < WAITED_SECONDS and self._holds_more():
            return False
        return 2 * quiet >= 3 * self._gap or spent >= WAITED_SECONDS

    def over(self, step: int, missing: bool) -> bool:
        """Whether no more steps are taken, steady or not; `missing`: a goal is not reached. What is done for a goal
        takes its time to rest, however late it comes."""
        if not self.auto:
            return step >= self.limit
        if missing:
            self._waited, self._gap_waiting = step, self._gap
            return step >= FAR_STEPS
        if step == self._waited + 1:
            self._gap = self._gap_waiting  # what rose in this step rose for the goal, not by chance after a long rest
        return step >= self.limit + self._waited

    def _holds_more(self) -> bool:
        """Whether what is held between steps has risen with each of the last ones: soon a rate can be told."""
        last = [[held for _, held in p.at_steps[-STEADY - 1 :]] for p in self.of.values()]
        return any(len(held) > STEADY and all(a < b for a, b in zip(held, held[1:])) for held in last)

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


def _kept(held: List[int]) -> List[int]:
    """Of what is held at each step's end what no later step has let go of."""
    return list(accumulate(reversed(held), min))[::-1]


def _rate(marks: List[int], often: bool = False) -> int:
    """The rise with each step of the last quarter. 0: it has not risen as often and about as fast as in the quarter
    before, as where batches differ in size: then the longest so far comes ever more seldom."""
    quarter = len(marks) // 4
    before, last = marks[-2 * quarter - 1 : -quarter], marks[-quarter - 1 :]
    least = quarter / 2 if often else RISES
    if len(marks) < RATED or any(sum(a < b for a, b in zip(part, part[1:])) < least for part in (before, last)):
        return 0
    slow, fast = sorted(part[-1] - part[0] for part in (before, last))
    return (last[-1] - last[0]) // quarter if fast <= 2 * slow else 0
