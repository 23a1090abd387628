"""Optimizers: the optimizer phase, and where a step ends.

The optimizer that stepped first leads: a step ends right after its own step. Others belong to the
step they happen in. A step that a gradient scaler skips is counted and flagged. When the leader is
gone, or has not stepped for long while another one has, that one leads.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any, Optional

from ..agent import Agent
from ..tracker import OPTIMIZER, SKIPPED, Tracker
from .modules import Roots

LEAD_PATIENCE = 50  # steps of other optimizers after which the leading one counts as retired


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
        agent.on_renew.append(self.forget)

    def forget(self) -> None:
        """In a forked child: nobody leads yet."""
        self._lead, self._others, self._running = None, 0, 0

    def install(self, module: Any) -> None:
        """Set the hooks that all optimizers share."""
        module.register_optimizer_step_pre_hook(self._before)
        module.register_optimizer_step_post_hook(self._after)

    def install_scaler(self, module: Any) -> None:
        """Notice steps that a GradScaler skips."""
        scaler = module.GradScaler
        if "step" not in scaler.__dict__:  # a newer torch: the one that it inherits is wrapped
            return
        original = scaler.step

        @functools.wraps(original)
        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            calls = self._calls
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

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
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

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._compiling() or self._running != id(optimizer):
            return
        self._running = 0
        if self._leads(optimizer):
            self.tracker.step_ended()
        else:
            self.tracker.leave(OPTIMIZER)

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
            self._lead, self._others = weakref.ref(optimizer), 0
            return True
        return False
