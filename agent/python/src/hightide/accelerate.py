"""Accelerate: Accelerator(log_with=HightideTracker()), then init_trackers and end_training as ever.

    init_trackers("bert", config) ─▶ a run of this name, with the configuration as tags      end_training ─▶ its end
    log({"loss": …}) ─▶ the last values become tags of the run

Steps and phases are PyTorch's, and seen as of any training.
"""

from __future__ import annotations

from typing import Any, Dict, Optional

import accelerate
from accelerate.tracking import GeneralTracker

from ._trainer import Recording, harmless


class HightideTracker(Recording, GeneralTracker):  # type: ignore[misc]
    """Records a training from init_trackers to end_training, unless something records already.

    Args:
        name: of the run; Accelerate does not tell trackers of one's own what the project is called.
        tags: of the run.
        alerts: limits to watch, such as "rss > 2GiB" and "rss > 50MiB/step".
        on_alert: called with each hightide.Alert, on a thread of its own; absent: one line on standard error.
    """

    name = "hightide"
    requires_logging_directory = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._last: Dict[str, object] = {}

    @property
    def tracker(self) -> str:
        """The id of our run; empty: none is recorded."""
        return self._trainer.run

    @harmless
    def start(self) -> None:
        """Begin a run. Older versions of Accelerate do not call this: there the first configuration or log does."""
        if not self._trainer.running:
            first = accelerate.PartialState().is_main_process
            self._trainer.begin("", {"trainer": f"accelerate {accelerate.__version__}"}, first)

    @harmless
    def store_init_configuration(self, values: Dict[str, Any]) -> None:
        """Keep the configuration as tags of the run."""
        self.start()
        self._trainer.tag(values)

    @harmless
    def log(self, values: Dict[str, Any], step: Optional[int] = None, **_: Any) -> None:
        """Remember the last value of each; our own figures are in the recording."""
        self.start()
        self._trainer.link()
        self._last.update((key, value) for key, value in values.items() if not key.startswith("hightide/"))

    @harmless
    def finish(self) -> None:
        """End the run."""
        self._trainer.tag(self._last)
        self._trainer.end()
