"""What a training with JAX or TensorFlow is not ended before: an evaluation, a checkpoint, the end of an epoch.

    --until ─▶ what is missing     Keras: evaluate, predict, save, an epoch of fit ─┐
                                   JAX: what its calls and copies tell (xla/asides.py) ─┴▶ reached

Nothing is cut short on the way: no kernel runs, so steps are quick. What was taken for a goal is a `condition`; one
that was not reached is told as such. A goal counts after a step was taken.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Callable, Dict, Set

from ..tracker import CHECKPOINT, EVALUATION
from ..training import Training

OF_PHASE = {EVALUATION: "evaluation", CHECKPOINT: "checkpoint"}
KNOWN = frozenset(("evaluation", "checkpoint", "epoch"))


class Goals:
    """Those that were asked for, and which of them are missing."""

    def __init__(self, training: Training) -> None:
        self.agent = training.agent
        self.tracker: Any = training.tracker
        self.missing: Set[str] = {
            goal for goal in os.environ.get("HIGHTIDE_IMAGINE_UNTIL", "").split(",") if goal in KNOWN
        }
        self._how: Dict[str, str] = {}

    def install(self, watch: Callable[[str, Callable[[Any], None]], None]) -> None:
        """See phases, and epochs of Keras, where there is a goal."""
        if not self.missing:
            return
        enter = self.tracker.enter

        def entered(phase: int, module: int = 0) -> bool:
            if phase in OF_PHASE:
                self.reached(OF_PHASE[phase], "a method of Keras's model")
            return bool(enter(phase, module))

        self.tracker.enter = entered
        watch("keras.src.callbacks.callback_list", self._epochs)

    def _epochs(self, module: Any) -> None:
        original = module.CallbackList.on_epoch_end

        @functools.wraps(original)
        def on_epoch_end(callbacks: Any, /, *args: Any, **kwargs: Any) -> Any:
            self.reached("epoch", "fit of Keras")
            return original(callbacks, *args, **kwargs)

        module.CallbackList.on_epoch_end = on_epoch_end

    def reached(self, goal: str, how: str) -> None:
        """One was. `how`: what was taken for it, with the line where that is known."""
        if goal in self.missing and self.tracker.steps_now():
            self.missing.discard(goal)
            self._how[goal] = "%s: %s" % (goal, how)
            self.agent.record({"type": "condition", "name": "reached", "value": "; ".join(self._how.values())})

    def tell_missing(self) -> None:
        """Say which goals were not reached before the training was ended."""
        for goal in sorted(self.missing):
            text = "no %s was seen in %d steps: what it takes is not in these figures" % (
                goal,
                self.tracker.steps_now(),
            )
            self.agent.record({"type": "not_reached", "what": goal, "text": text, "perhaps": True})
