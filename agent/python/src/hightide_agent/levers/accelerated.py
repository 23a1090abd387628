"""Batches of a loop of Accelerate in parts: only the last part of a batch is told to be a step.

    what `prepare` has made of a loader ─▶ its batches, cut, while the model trains
    Accelerator.backward ─▶ the loss by the part's share     sync_gradients ─▶ False until the last part

It is how Accelerate itself accumulates batches: where sync_gradients is False, its optimizers, schedulers and zero_grad
do nothing. A loop that counts batches counts parts.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import Any, Callable, Iterator, Optional

from .found import Found, Refused


class Accelerated:
    """The Accelerator of this process, and the part that its loop trains now."""

    def __init__(
        self, parts: int, library: Any, enter: Callable[[int], None], refuse: Callable[[Any, str], None]
    ) -> None:
        self.parts, self.library, self.enter, self.refuse = parts, library, enter, refuse
        self.share: Optional[float] = None  # of the part in its batch; None: no batch is cut
        self.last = True
        self.passes = 0  # backward passes of Accelerator.backward so far
        self._of: Any = lambda: None  # the Accelerator
        self._agent: Any = None

    def accelerator(self, module: Any) -> None:
        """See which one prepares, and weight its losses."""
        kind, ours = module.Accelerator, self
        prepare, backward, do_sync, clip = kind.prepare, kind.backward, kind._do_sync, kind.clip_grad_norm_

        @functools.wraps(prepare)
        def prepared(its: Any, *args: Any, **kwargs: Any) -> Any:
            ours._of = weakref.ref(its)
            return prepare(its, *args, **kwargs)

        @functools.wraps(backward)
        def weighted(its: Any, loss: Any, **kwargs: Any) -> Any:
            if ours.share is not None:
                ours.passes += 1
                loss = loss * ours.share
            return backward(its, loss, **kwargs)

        @functools.wraps(do_sync)
        def synced(its: Any, *args: Any, **kwargs: Any) -> Any:  # accumulate() begins with it
            done = do_sync(its, *args, **kwargs)
            if ours.share is not None:
                its.gradient_state._set_sync_gradients(ours.last)
            return done

        @functools.wraps(clip)
        def clipped(its: Any, parameters: Any, max_norm: Any, *args: Any, **kwargs: Any) -> Any:
            return clip(its, parameters, max_norm if ours.last else float("inf"), *args, **kwargs)

        kind.prepare, kind.backward, kind._do_sync, kind.clip_grad_norm_ = prepared, weighted, synced, clipped

    def loaders(self, module: Any) -> None:
        """Cut what loaders give."""
        for kind in (module.DataLoaderShard, module.DataLoaderDispatcher):
            kind.__iter__ = self._cutting(kind.__iter__)

    def _cutting(self, plain: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
        @functools.wraps(plain)
        def __iter__(loader: Any) -> Iterator[Any]:
            for batch in plain(loader):
                if self._trains(sys._getframe(1)):
                    yield from self._parts(batch)
                else:
                    yield batch

        return __iter__

    def _trains(self, frame: Any) -> bool:
        """Whether the loop trains, and is the program's own: batches of transformers' Trainer are cut elsewhere."""
        its = self._of()
        if its is None or not any(model.training for model in its._models):
            return False
        while frame is not None:
            if frame.f_globals.get("__name__") == "transformers.trainer":
                return False
            frame = frame.f_back
        return True

    def _parts(self, batch: Any) -> Iterator[Any]:
        size = self.library.size_of((batch,), {})
        each = -(-size // self.parts)
        state = self._of().gradient_state
        self.enter(min(self.parts, size))
        try:
            for begin in range(0, size, each):
                end = min(size, begin + each)
                self.share, self.last = (end - begin) / size, end == size
                state._set_sync_gradients(self.last)
                yield self.library.cut(batch, size, begin, end)
                if not self.passes and self._agent is not None:  # before the first step: later, a pass may be left out
                    self.refuse(self._agent, "micro_batch: the first part had no backward pass by Accelerator.backward")
        finally:
            self.share, self.last = None, True
            state._set_sync_gradients(True)
            self.enter(0)

    def check(self, found: Found) -> None:
        """Refuse what would not be the same training."""
        its, self._agent = self._of(), found.agent
        if its is not None and self.share is not None and its.gradient_accumulation_steps > 1:
            raise Refused(
                "Accelerate puts %d batches together already: raise its gradient_accumulation_steps, and make "
                "batches smaller" % its.gradient_accumulation_steps
            )
