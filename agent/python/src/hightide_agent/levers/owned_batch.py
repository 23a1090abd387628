"""Another size of the batch that a known trainer owns, in imagined runs of `tune --goal batch`.

    HIGHTIDE_BATCH ─▶ transformers' Trainer: TrainingArguments.per_device_train_batch_size
                   ─▶ Lightning's Trainer:   batch_size of the DataLoader that it trains with

It is no lever: no plan has it, as the batch is the program's to say. Facts tell who owns it, and how many samples the
data set has, which is the largest batch that there can be.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Callable

VARIABLE = "HIGHTIDE_BATCH"
OWNER, SAMPLES = "batch owner", "batch samples"
ARGUMENTS = "per_device_train_batch_size of transformers' TrainingArguments"
LOADER = "batch_size of the DataLoader that Lightning trains with"

Fact = Callable[[str, Any], None]


def install(watch: Callable[[str, Callable[[Any], None]], None], fact: Fact) -> None:
    """Wait for the trainers' modules."""
    size = int(os.environ[VARIABLE])
    watch("transformers.trainer", lambda module: _trainer(module.Trainer, size, fact))
    for name in ("lightning.pytorch.", "pytorch_lightning."):
        watch(name + "loops.fit_loop", lambda module: _lightning(module, size, fact))


def _trainer(kind: Any, size: int, fact: Fact) -> None:
    """Give each trainer's arguments the size, once it has them."""
    plain = kind.__init__

    @functools.wraps(plain)
    def __init__(trainer: Any, *args: Any, **kwargs: Any) -> None:
        plain(trainer, *args, **kwargs)
        trainer.args.per_device_train_batch_size = size
        trainer._train_batch_size = trainer.args.train_batch_size
        _tell(fact, ARGUMENTS, getattr(trainer, "train_dataset", None))

    kind.__init__ = __init__


def _lightning(module: Any, size: int, fact: Fact) -> None:
    """Give the loader of a fit the size, before Lightning makes its own of it. Other samplers are left alone."""
    plain = module._process_dataloader

    @functools.wraps(plain)
    def _process_dataloader(trainer: Any, trainer_fn: Any, stage: Any, loader: Any) -> Any:
        sampler: Any = getattr(loader, "batch_sampler", None)
        if type(sampler).__name__ == "BatchSampler":
            sampler.batch_size = size
            vars(loader)["batch_size"] = size  # a loader refuses to have it set
            _tell(fact, LOADER, getattr(loader, "dataset", None))
        return plain(trainer, trainer_fn, stage, loader)

    module._process_dataloader = _process_dataloader


def _tell(fact: Fact, owner: str, data: Any) -> None:
    fact(OWNER, owner)
    try:
        fact(SAMPLES, len(data))
    except TypeError:  # one that does not say how long it is
        pass
