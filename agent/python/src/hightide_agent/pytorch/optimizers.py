"""Optimizers: the optimizer phase, and where a step ends.

The optimizer that stepped first leads: a step ends right after its own step. Others belong to the
step they happen in. A step that a gradient scaler skips is counted and flagged. When the leader is
gone, or has not stepped for long while another one has, that one leads.

A fused optimizer looks itself whether the scaler found inf or nan. On the host we look with it. On a
device the answer comes later: it is copied to the host without waiting for it, and skipped steps are
told as a count once it is there.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any, Optional

from ..agent import Agent
from ..tracker import OPTIMIZER, SKIPPED, Tracker
from .modules import Roots

LEAD_PATIENCE = 50  # steps of other optimizers after which the leading one counts as retired


class Verdicts:
    """The scaler's verdicts on their way from the device: no wait, and no memory of the device's."""

    ROOM = 64  # steps that the host may be ahead; those beyond are not asked about

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.host: Any = None
        self.asked: list[tuple[int, Any]] = []  # place in host, event behind the copy
        self.next = 0

    def ask(self, found: Any) -> None:
        cuda = self.torch.cuda
        if len(self.asked) >= self.ROOM or cuda.is_current_stream_capturing():
            return
        if self.host is None:
            self.host = self.torch.zeros(self.ROOM, dtype=found.dtype, pin_memory=True)
        place = self.next % self.ROOM
        self.next += 1
        self.host[place].copy_(found.reshape(()), non_blocking=True)
        behind = cuda.Event()
        behind.record(cuda.current_stream(found.device))
        self.asked.append((place, behind))

    def answered(self) -> int:
        """How many of those that have arrived were skipped."""
        skipped = 0
        while self.asked and self.asked[0][1].query():
            skipped += bool(self.host[self.asked.pop(0)[0]].item())
        return skipped


class Steps:
    """Hooks on all optimizers of the process."""

    def __init__(self, agent: Agent, tracker: Tracker, roots: Roots, torch: Any) -> None:
        self.agent = agent
        self.tracker = tracker
        self.roots = roots
        compiler = getattr(torch, "compiler", None)
        self._compiler = compiler if hasattr(compiler, "is_compiling") else None
        self._known: list[Any] = []  # weak references, in order of first steps
        self._lead: Optional[Any] = None
        self._others = 0  # steps of others since the leader's last
        self._running = 0  # id of the outermost optimizer that is stepping
        self._calls = 0
        self._verdicts: Optional[Verdicts] = Verdicts(torch)
        agent.on_renew.append(self.forget)
        agent.at_end.append(self._tell_skipped)

    def forget(self) -> None:
        """In a forked child: nobody leads yet."""
        self._lead, self._others, self._running = None, 0, 0
        self._verdicts = None  # a forked child has no device of its parent's

    def install(self, module: Any) -> None:
        """Set the hooks that all optimizers share."""
        calm = self.tracker.calm

        def before(optimizer: Any, args: Any, kwargs: Any) -> None:
            if not calm.lead:
                self._before(optimizer)

        def after(optimizer: Any, args: Any, kwargs: Any) -> None:
            if not (calm.lead and calm.lead == id(optimizer) and calm.count()):
                self._after(optimizer)

        module.register_optimizer_step_pre_hook(before)
        module.register_optimizer_step_post_hook(after)

    def install_scaler(self, module: Any) -> None:
        """Notice steps that a GradScaler skips."""
        scaler = module.GradScaler
        if "step" not in scaler.__dict__:  # a newer torch: the one that it inherits is wrapped
            return
        original = scaler.step

        @functools.wraps(original)
        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            calls = self._calls
            self.tracker.calm.lead = 0  # it may be skipped, or the optimizer handed a verdict
            result = original(scaler, optimizer, *args, **kwargs)
            if self._calls == calls and not self._compiling():
                self._skipped(optimizer)
            return result

        scaler.step = step

    def optimizers(self) -> list[Any]:
        """Those that have stepped and are still alive."""
        return [o for o in (reference() for reference in self._known) if o is not None]

    def _compiling(self) -> bool:
        return self._compiler is not None and self._compiler.is_compiling()

    def _before(self, optimizer: Any) -> None:
        if self._compiling():
            return
        self._calls += 1
        if self._running not in (0, id(optimizer)):  # an optimizer that wraps another
            return
        self._running = id(optimizer)
        self.tracker.claim()
        self._meet(optimizer)
        if self.tracker.recording and not self.tracker.inside(OPTIMIZER):
            self.tracker.enter(OPTIMIZER)

    def _after(self, optimizer: Any) -> None:
        if self._compiling() or self._running not in (0, id(optimizer)):
            return
        if self._running == 0 and (self._lead is None or self._lead() is not optimizer):
            self._another_in_calm()
            return
        self._running = 0
        if self._leads(optimizer):
            self.tracker.step_ended(self._decided(optimizer), id(optimizer))
        else:
            self.tracker.leave(OPTIMIZER)

    def _another_in_calm(self) -> None:
        """Not the leader's step, nor one that was seen to begin: after many, look whether the leader still steps."""
        self._others += 1
        if self._others > LEAD_PATIENCE:
            self._others = self.tracker.calm.lead = 0

    def _decided(self, optimizer: Any) -> int:
        """The flags of a step whose optimizer was handed the scaler's verdict and stepped, or not, by itself."""
        found = getattr(optimizer, "found_inf", None)
        if found is None:
            return 0
        try:
            if found.device.type == "cpu":
                return SKIPPED if found.item() else 0
            if found.device.type == "cuda" and self._verdicts is not None:
                self._verdicts.ask(found)
                self._tell_skipped()
        except Exception as error:
            self._verdicts = None
            self.agent.log("could not see which steps the scaler skips", error)
        return 0

    def _tell_skipped(self) -> None:
        skipped = 0 if self._verdicts is None else self._verdicts.answered()
        if skipped:
            self.agent.record({"type": "skipped", "count": skipped})

    def _skipped(self, optimizer: Any) -> None:
        self.tracker.claim()
        self._meet(optimizer)
        if self._leads(optimizer):
            self.tracker.step_ended(SKIPPED)

    def _meet(self, optimizer: Any) -> None:
        if any(reference() is optimizer for reference in self._known):
            return
        self._known = [r for r in self._known if r() is not None] + [weakref.ref(optimizer)]
        try:
            self.roots.adopt_owner(optimizer)
        except Exception as error:
            self.agent.log("could not find the module of an optimizer", error)

    def _leads(self, optimizer: Any) -> bool:
        lead = None if self._lead is None else self._lead()
        if lead is optimizer:
            self._others = 0
            return True
        self._others += 1
        if lead is None or self._others > LEAD_PATIENCE:
            self._lead, self._others = weakref.ref(optimizer, self._lead_gone), 0
            return True
        return False

    def _lead_gone(self, lead: Any) -> None:
        if lead is self._lead:
            self.tracker.calm.lead = 0
