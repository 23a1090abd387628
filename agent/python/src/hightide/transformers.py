"""The Trainer of transformers: Trainer(…, callbacks=[HightideCallback()]).

    train ─▶ a run, named as in TrainingArguments      epochs, evaluations, checkpoints ─▶ spans
    each log ─▶ hightide/rss, hightide/peak_rss, … in it, for W&B, MLflow, TensorBoard, the progress bar and log_history

Steps and phases are PyTorch's, and seen as of any training.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, Optional

import transformers

from ._trainer import Recording, harmless

TAGS = {"trainer": f"transformers {transformers.__version__}"}


class HightideCallback(Recording, transformers.TrainerCallback):  # type: ignore[misc]
    """Records train; also evaluate and predict for themselves. Each is a run, unless something records already.

    Args:
        name: of the run; empty: run_name, else the name of output_dir.
        tags: of the run.
        alerts: limits to watch, such as "rss > 2GiB" and "rss > 50MiB/step".
        on_alert: called with each hightide.Alert, on a thread of its own; absent: one line on standard error.
    """

    @harmless
    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Begin a run."""
        self._before_reporters(sys._getframe(2))  # behind `harmless`
        self._trainer.begin(_name(args), TAGS, state.is_world_process_zero)

    def _before_reporters(self, frame: Any) -> None:
        """Stand before the callbacks that report, so that the figures are in the log when they get it.

        The caller's frame is the only way to the list of callbacks. Where it looks otherwise the figures are only in
        log_history, and with callbacks that stand behind this one.
        """
        from hightide_agent.frames import variables

        callbacks = getattr(variables(frame).get("self"), "callbacks", None)
        if isinstance(callbacks, list) and callbacks.count(self) == 1:
            callbacks.remove(self)
            first = bool(callbacks) and isinstance(callbacks[0], transformers.DefaultFlowCallback)
            callbacks.insert(1 if first else 0, self)  # DefaultFlowCallback says what comes next

    @harmless
    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Enter a span."""
        self._trainer.enter("epoch")

    @harmless
    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Enter the span of what comes next."""
        self._trainer.step(state.global_step)
        self._next(control)

    @harmless
    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Leave a span, and enter that of what comes next."""
        self._trainer.leave("epoch")
        self._next(control)

    @harmless
    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[Dict[str, Any]] = None, **_: Any) -> None:
        """Add what memory does to the log."""
        if logs is not None and self._trainer.running:
            figures = self._trainer.figures()
            logs.update(figures)
            if state.log_history:
                state.log_history[-1].update(figures)
        self._next(control)

    @harmless
    def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Enter a span, where an evaluation or prediction was asked for by itself."""
        if not self._trainer.inside("evaluation"):
            self._trainer.alone("evaluation", _name(args), TAGS, state.is_world_process_zero)

    @harmless
    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Leave a span, and enter that of what comes next."""
        self._trainer.leave("evaluation")
        self._next(control)

    @harmless
    def on_predict(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Leave a span."""
        self._trainer.leave("evaluation")

    @harmless
    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Leave a span."""
        self._trainer.leave("checkpoint")

    @harmless
    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """End the run."""
        self._trainer.end()

    def _next(self, control: Any) -> None:
        """The trainer logs, evaluates and saves, in this order and as far as `control` asks for it; then it says so."""
        if not self._trainer.running or control.should_log:
            return
        if control.should_evaluate:
            self._trainer.enter("evaluation")
        elif control.should_save:
            self._trainer.enter("checkpoint")


def _name(args: Any) -> str:
    return str(args.run_name or os.path.basename(os.path.abspath(args.output_dir)))
