"""`run --rescue`: a step of transformers' Trainer that runs out of memory is done again in micro-batches.

Trainer.training_step(model, inputs, items) does the forward and the backward pass of a batch, which is what
hightide.rescue takes. Its file is loaded from its place beside this package, as the program may have no hightide or
another one.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import weakref
from typing import Any, Callable

from ..training import Training

FACT = "rescue"


def install(training: Training, watch: Callable[[str, Callable[[Any], None]], None]) -> None:
    """Wait for the Trainer's module."""
    training.agent.fact(FACT, "none")
    watch("transformers.trainer", lambda module: _wrap(training, module.Trainer))


def _wrap(training: Training, kind: Any) -> None:
    """Have each trainer's training_step done by a Rescued of its own."""
    plain, kept = kind.training_step, library()
    rescued: Any = weakref.WeakKeyDictionary()

    def told(record: Any) -> None:
        training.agent.record({**record, "step": training.tracker.steps_now()})

    @functools.wraps(plain)
    def training_step(trainer: Any, model: Any, inputs: Any, *more: Any, **named: Any) -> Any:
        again = rescued.get(trainer)
        if again is None:
            again = rescued[trainer] = kept.Rescued(None, [model], True, told)
        again.models, again.mean = [model], not is_sum(trainer, *more, **named)
        again.step = lambda batch: plain(trainer, model, batch, *more, **named)
        try:
            return again(inputs)
        finally:
            again.step = None  # it names the trainer, whose life is its own

    kind.training_step = training_step
    training.agent.fact(FACT, "the Trainer of transformers")


def is_sum(trainer: Any, *more: Any, **named: Any) -> bool:
    """Whether a trainer divides the loss by the items of the whole batch: it is then a sum over the parts."""
    items = named.get("num_items_in_batch", more[0] if more else None)
    return items is not None and bool(getattr(trainer, "model_accepts_loss_kwargs", False))


def library() -> Any:
    """The module hightide._rescue, which goes with this agent."""
    place = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "hightide")
    spec: Any = importlib.util.spec_from_file_location("hightide_agent._rescue", os.path.join(place, "_rescue.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
