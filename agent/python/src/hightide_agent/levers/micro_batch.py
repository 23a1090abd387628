"""Each batch of a known trainer is trained in `parts`, one after the other, and the optimizer steps once.

Activations of one part are alive at a time. The loss of each part is weighted by its share of the batch, or summed
where the trainer divides by the items of the whole batch. Numbers change: gradients equal those of the whole batch
within the rounding of the sum, and dropout draws for each part. It costs smaller kernels, and more launches of them. It
is refused where no step of transformers' Trainer, of Lightning's automatic optimization or of a loop of Accelerate is
at work, with batch norm, which would see the parts alone, and where a batch has fewer samples than parts.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, Dict

from .accelerated import Accelerated
from .found import Found, Refused

TRAINER, LIGHTNING = "transformers.trainer", "loops.optimization.automatic"


class Cutting:
    """Into how many parts batches are cut, and whether one is being trained in parts now."""

    def __init__(self, parts: int, refuse: Callable[[Any, str], None]) -> None:
        from ..pytorch import rescue

        self.parts = parts
        self.library = rescue.library()
        self.inside = 0  # parts of the batch that is trained now
        self.accelerated = Accelerated(parts, self.library, self.enter, refuse)

    def enter(self, parts: int) -> None:
        """A batch begins that is trained in parts; 0: it ended."""
        self.inside = parts

    def trainer(self, module: Any) -> None:
        """Cut the batches of transformers' Trainer."""
        from ..pytorch.rescue import is_sum

        kind, cutting = module.Trainer, self
        plain = kind.training_step

        @functools.wraps(plain)
        def training_step(trainer: Any, model: Any, inputs: Any, *more: Any, **named: Any) -> Any:
            mean = not is_sum(trainer, *more, **named)
            return cutting.done(lambda batch: plain(trainer, model, batch, *more, **named), mean, inputs)

        kind.training_step = training_step

    def done(self, step: Callable[[Any], Any], mean: bool, batch: Any) -> Any:
        """Do a step in parts."""
        rescued = self.library.Rescued(step, [], mean, lambda _: None)
        rescued.parts, self.inside = self.parts, min(self.parts, self.library.size_of((batch,), {}))
        try:
            return rescued.in_parts((batch,), {})
        finally:
            self.inside = 0

    def lightning(self, module: Any) -> None:
        """Cut the batches of Lightning's automatic optimization: the closure that an optimizer's step calls."""
        kind, cutting = module._AutomaticOptimization, self
        plain = kind._make_closure

        @functools.wraps(plain)
        def _make_closure(loop: Any, kwargs: Any, optimizer: Any, batch_idx: int) -> Any:
            closure = plain(loop, kwargs, optimizer, batch_idx)
            batch = kwargs.get("batch", next(iter(kwargs.values()), None))
            name: Any = next((n for n, value in kwargs.items() if value is batch), None)

            def closed(*_: Any, **__: Any) -> Any:
                return cutting.closed(
                    lambda part: plain(loop, type(kwargs)(kwargs, **{name: part}), optimizer, batch_idx), batch
                )

            if name is not None:
                closure.closure = closed
            return closure

        kind._make_closure = _make_closure

    def closed(self, make: Callable[[Any], Any], batch: Any) -> Any:
        """What the closure of a batch does, by those of its parts."""
        torch: Any = sys.modules["torch"]
        size = self.library.size_of((batch,), {})
        each = -(-size // self.parts)
        loss: Any = None
        result: Any = None
        self.inside = min(self.parts, size)
        try:
            for begin in range(0, size, each):
                end = min(size, begin + each)
                part = make(self.library.cut(batch, size, begin, end))
                with torch.enable_grad():
                    result = part._step_fn()
                    if begin == 0 and part._zero_grad_fn is not None:
                        part._zero_grad_fn()
                    if result.closure_loss is None:
                        continue
                    share = (end - begin) / size
                    if part._backward_fn is not None:
                        part._backward_fn(result.closure_loss * share)
                    loss = result.loss * share + (0 if loss is None else loss)
            result.loss = loss
            return result
        finally:
            self.inside = 0


cutting: Any = None


def install(
    watch: Callable[[str, Callable[[Any], None]], None], settings: Dict[str, Any], refuse: Callable[[Any, str], None]
) -> None:
    """Before the program's first step: wait for the trainers. `refuse` ends the program for a reason."""
    global cutting
    cutting = Cutting(int(settings.get("parts", 2)), refuse)
    watch(TRAINER, cutting.trainer)
    for name in ("lightning.pytorch.", "pytorch_lightning."):
        watch(name + LIGHTNING, cutting.lightning)
    watch("accelerate.accelerator", cutting.accelerated.accelerator)
    watch("accelerate.data_loader", cutting.accelerated.loaders)


def prepare(found: Found, settings: Dict[str, Any]) -> Callable[[], str]:
    """Inside of the first part."""
    if cutting is None or not cutting.inside:
        raise Refused(
            "no step of transformers' Trainer, of Lightning or of Accelerate is at work; "
            "smaller batches are the program's to make"
        )
    cutting.accelerated.check(found)
    if cutting.inside < cutting.parts:
        raise Refused("a batch of %d samples is not cut into %d parts" % (cutting.inside, cutting.parts))
    for name, module in found.model.named_modules():
        if getattr(module, "track_running_stats", False) or type(module).__name__.startswith(
            ("BatchNorm", "SyncBatch")
        ):
            raise Refused("%s is a batch norm, which would see the parts alone" % name)
    return lambda: "each batch in %d parts" % cutting.parts
