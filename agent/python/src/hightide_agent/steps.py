"""Where a step ends, whatever the framework: which of a program's optimizers counts.

    an optimizer is about to step ─▶ begin        it has stepped ─▶ end ─▶ the tracker's step_ended
    a compiled function that steps one returned ─▶ passed ─▶ the same

The optimizer that stepped first leads: a step ends right after its own step. Others belong to the step they happen
in. When the leader is gone, or has not stepped for long while another one has, that one leads.
"""

from __future__ import annotations

import weakref
from typing import Any, Callable, Optional

from .tracker import OPTIMIZER, SKIPPED, Tracker

PATIENCE = 50  # steps of other optimizers after which the leading one counts as retired


class Steps:
    """The optimizers of the process."""

    def __init__(self, tracker: Tracker) -> None:
        self.tracker = tracker
        self.begun = 0  # steps that were seen to begin
        self.at_first: list[Callable[[Any], None]] = []  # called with each optimizer at its first step
        self._known: list[Callable[[], Any]] = []  # weak references, in order of first steps
        self._lead = 0  # its id
        self._alive: Optional[Callable[[], Any]] = None  # a weak reference that tells when it is gone
        self._others = 0  # steps of others since the leader's last
        self._running = 0  # id of the outermost optimizer that is stepping
        self._guessed = 0  # id of a leader whose steps are guessed
        tracker.agent.on_renew.append(self.forget)

    def forget(self) -> None:
        """In a forked child: nobody leads yet."""
        self._lead = self._others = self._running = 0

    def optimizers(self) -> list[Any]:
        """Those that have stepped and are still alive."""
        return [o for o in (reference() for reference in self._known) if o is not None]

    def begin(self, optimizer: Any) -> None:
        """An optimizer is about to step. Need not be called while the tracker's quick steps have a lead."""
        self.begun += 1
        if self._running not in (0, id(optimizer)):  # an optimizer that wraps another
            return
        self._running = id(optimizer)
        self.tracker.claim()
        self._first(optimizer)
        if self.tracker.recording and not self.tracker.inside(OPTIMIZER):
            self.tracker.enter(OPTIMIZER)

    def end(self, optimizer: Any, flags: Optional[Callable[[Any], int]] = None) -> None:
        """It has stepped. `flags`: asked for those of the step, if it counts."""
        if self._running not in (0, id(optimizer)):
            return
        if self._running == 0 and self._lead != id(optimizer):
            self._another()
            return
        self._running = 0
        if self._leads(optimizer):
            self.tracker.step_ended(0 if flags is None else flags(optimizer), id(optimizer))
        else:
            self.tracker.leave(OPTIMIZER)

    def failed(self, optimizer: Any) -> None:
        """It raised instead."""
        if self._running == id(optimizer):
            self._running = 0
            self.tracker.leave(OPTIMIZER)

    def skipped(self, optimizer: Any) -> None:
        """It was not called, since the step is not to be taken."""
        self.tracker.claim()
        self._first(optimizer)
        if self._leads(optimizer):
            self.tracker.step_ended(SKIPPED)

    def passed(self, owner: Any, guessed: bool = False) -> None:
        """A step has ended that was not seen to begin: what took it is compiled. `owner` stands for its optimizer.
        `guessed`: a later guess is a better one."""
        if guessed:
            if self._lead == self._guessed != id(owner):  # a better guess
                self._lead = self.tracker.quick.lead = 0
            self._guessed = id(owner)
        quick = self.tracker.quick
        if quick.lead and quick.lead == id(owner) and quick.count():
            return
        if self._running:
            return
        self.tracker.claim()
        if self._leads(owner):
            self.tracker.step_ended(0, id(owner))

    def marked(self, by: Any) -> bool:
        """The program itself says that a step ends here; False where an optimizer's steps are the steps."""
        quick = self.tracker.quick
        if quick.lead and quick.lead == id(by) and quick.count():
            return True
        self.tracker.claim()
        if not self._leads(by):
            return False
        self.tracker.step_ended(0, id(by))
        return True

    def _another(self) -> None:
        """Not the leader's step, nor one that was seen to begin: after many, look whether the leader still steps."""
        self._others += 1
        if self._others > PATIENCE:
            self._others = self.tracker.quick.lead = 0

    def _first(self, optimizer: Any) -> None:
        if any(reference() is optimizer for reference in self._known):
            return
        self._known = [r for r in self._known if r() is not None] + [_reference(optimizer)]
        for callback in self.at_first:
            try:
                callback(optimizer)
            except Exception as error:
                self.tracker.agent.log("could not look at an optimizer", error)

    def _leads(self, optimizer: Any) -> bool:
        if self._lead == id(optimizer):
            self._others = 0
            return True
        if self.tracker.quick.lead:  # whose steps are only counted, so it may have taken one just now
            self._another()
            return False
        self._others += 1
        if self._lead and self._others <= PATIENCE:
            return False
        self._lead, self._others = id(optimizer), 0
        self._alive = _reference(optimizer, self._lead_gone)
        return True

    def _lead_gone(self, reference: Any) -> None:
        if reference is self._alive:
            self._lead = self.tracker.quick.lead = 0


def _reference(optimizer: Any, gone: Optional[Callable[[Any], None]] = None) -> Callable[[], Any]:
    """A weak reference; to an object that can have none, one that leads nowhere."""
    try:
        return weakref.ref(optimizer, gone)
    except TypeError:
        return lambda: None
