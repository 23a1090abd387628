"""Lightning: trainer = Trainer(callbacks=[HightideCallback()]).

    setup ─▶ a run begins      epochs, validation, test, predict ─▶ spans      teardown, an exception ─▶ the run ends
    every log_every_n_steps ─▶ hightide/rss, hightide/peak_rss, … to the trainer's loggers

Steps, phases and checkpoints are PyTorch's, and seen as of any training.
"""

from __future__ import annotations

import sys
from typing import Any, Iterable, Iterator

from . import _trackers
from ._trainer import Recording, harmless

if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    import pytorch_lightning as lightning
else:
    try:
        import lightning.pytorch as lightning
    except ImportError:
        import pytorch_lightning as lightning  # the same, as it was called before


class HightideCallback(Recording, lightning.Callback):  # type: ignore[misc]
    """Records what a Trainer does; each fit, validate, test or predict is a run, unless something records already.

    Args:
        name: of the run; empty: the logger's name and version.
        tags: of the run.
        alerts: limits to watch, such as "rss > 2GiB" and "rss > 50MiB/step".
        on_alert: called with each hightide.Alert, on a thread of its own; absent: one line on standard error.
    """

    _logged = -1  # the step that was logged last

    @harmless
    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Begin a run."""
        loggers = [f"{logger.name}/{logger.version}" for logger in trainer.loggers]
        name = loggers[0] if loggers else type(pl_module).__name__
        tags = {"trainer": f"lightning {lightning.__version__}", "stage": getattr(stage, "value", stage)}
        if loggers:
            tags["loggers"] = " ".join(loggers)
        self._trainer.begin(name, tags, trainer.is_global_zero)
        self._trainer.link(*_linkable(trainer.loggers))
        self._logged = -1

    @harmless
    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Enter a span."""
        self._trainer.enter("epoch")

    @harmless
    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        """Log, as often as the trainer does."""
        step = trainer.global_step
        self._trainer.step(step)
        if step > max(self._logged, 0) and step % trainer.log_every_n_steps == 0:
            self._log(trainer)

    @harmless
    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Leave a span."""
        self._trainer.leave("epoch")

    @harmless
    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Enter a span."""
        self._trainer.enter("validation")

    @harmless
    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Leave a span."""
        self._trainer.leave("validation")

    @harmless
    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        """Enter a span."""
        self._trainer.enter("test")

    @harmless
    def on_test_end(self, trainer: Any, pl_module: Any) -> None:
        """Leave a span."""
        self._trainer.leave("test")

    @harmless
    def on_predict_start(self, trainer: Any, pl_module: Any) -> None:
        """Enter a span."""
        self._trainer.enter("predict")

    @harmless
    def on_predict_end(self, trainer: Any, pl_module: Any) -> None:
        """Leave a span."""
        self._trainer.leave("predict")

    @harmless
    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """End the run: the trainer stops."""
        self._trainer.end()

    @harmless
    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """End the run."""
        if stage == "fit" and self._logged != trainer.global_step:
            self._log(trainer)
        self._trainer.end()

    def _log(self, trainer: Any) -> None:
        self._logged = trainer.global_step
        figures = self._trainer.figures()
        for logger in trainer.loggers:
            logger.log_metrics(figures, step=trainer.global_step)


def _linkable(loggers: Iterable[Any]) -> Iterator[_trackers.Tracker]:
    """Of loggers, the runs that are active nowhere else."""
    for logger in loggers:
        if type(logger).__name__ == "MLFlowLogger":
            from . import mlflow

            yield mlflow.Run(logger.run_id, logger.experiment)
        elif type(logger).__name__ == "TensorBoardLogger":
            from . import tensorboard

            yield tensorboard.Run(logger.experiment, logger.log_dir)
