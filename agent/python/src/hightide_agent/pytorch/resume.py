"""`run --retry`: transformers' Trainer goes on from its last checkpoint where the program is started again.

That is as resume_from_checkpoint=True. A program that says itself what to resume from is left alone, and so is a
checkpoint that was there before the first start: it is of another training.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Callable, Optional

from ..training import Training


def install(training: Training, watch: Callable[[str, Callable[[Any], None]], None]) -> None:
    """Wait for the Trainer's module."""
    watch("transformers.trainer", lambda module: _wrap(training, module.Trainer))


def _wrap(training: Training, kind: Any) -> None:
    plain = kind.train

    @functools.wraps(plain)
    def train(trainer: Any, resume_from_checkpoint: Any = None, *more: Any, **named: Any) -> Any:
        if resume_from_checkpoint is None:
            resume_from_checkpoint = _last(training, trainer)
        return plain(trainer, resume_from_checkpoint, *more, **named)

    kind.train = train


def _last(training: Training, trainer: Any) -> Optional[str]:
    """The last checkpoint in the trainer's folder that was written since the first start; None: there is none."""
    try:
        from transformers.trainer_utils import get_last_checkpoint

        folder = trainer.args.output_dir
        found: Optional[str] = get_last_checkpoint(folder) if os.path.isdir(folder) else None
        if found and os.stat(found).st_mtime_ns >= int(os.environ.get("HIGHTIDE_RETRY_SINCE") or 0):
            training.agent.fact("resumed", os.path.basename(found))
            return found
    except Exception as error:
        training.agent.log("could not find the trainer's last checkpoint", error)
    return None
