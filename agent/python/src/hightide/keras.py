"""Keras 3, on any backend: model.fit(x, y, callbacks=[HightideCallback()]).

    fit ─▶ a run, named after the model      its epochs and evaluations ─▶ spans
    the end of an epoch ─▶ hightide/rss, hightide/peak_rss, … in the epoch's logs, for History and all later callbacks

Steps, layers and checkpoints are seen as of any training with Keras.
"""

from __future__ import annotations

from typing import Any, Dict, Optional

import keras

from ._trainer import Recording, harmless

TAGS = {"trainer": f"keras {keras.__version__} {keras.config.backend()}"}


class HightideCallback(Recording, keras.callbacks.Callback):  # type: ignore[misc]
    """Records fit, evaluate and predict; each is a run, unless something records already.

    Callbacks that stand behind this one in the list, such as CSVLogger, write the figures as well.

    Args:
        name: of the run; empty: the model's.
        tags: of the run.
        alerts: limits to watch, such as "rss > 2GiB" and "rss > 50MiB/step".
        on_alert: called with each hightide.Alert, on a thread of its own; absent: one line on standard error.
    """

    @harmless
    def on_train_begin(self, logs: Optional[Dict[str, Any]] = None) -> None:
        """Begin a run."""
        self._trainer.begin(self._name(), TAGS)

    @harmless
    def on_epoch_begin(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        """Enter a span."""
        self._trainer.enter("epoch")

    @harmless
    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        """Leave a span, and add what memory did to the logs."""
        self._trainer.leave("epoch")
        if logs is not None:
            logs.update(self._trainer.figures())

    @harmless
    def on_test_begin(self, logs: Optional[Dict[str, Any]] = None) -> None:
        """Enter a span."""
        self._trainer.alone("evaluation", self._name(), TAGS)

    @harmless
    def on_test_end(self, logs: Optional[Dict[str, Any]] = None) -> None:
        """Leave a span."""
        self._trainer.leave("evaluation")

    @harmless
    def on_predict_begin(self, logs: Optional[Dict[str, Any]] = None) -> None:
        """Enter a span."""
        self._trainer.alone("predict", self._name(), TAGS)

    @harmless
    def on_predict_end(self, logs: Optional[Dict[str, Any]] = None) -> None:
        """Leave a span."""
        self._trainer.leave("predict")

    @harmless
    def on_train_end(self, logs: Optional[Dict[str, Any]] = None) -> None:
        """End the run."""
        self._trainer.end()

    def _name(self) -> str:
        return str(getattr(self.model, "name", "") or "")
