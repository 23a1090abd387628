"""DataLoader: the data phase in the process that trains, the workers' role, and what grows in them."""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable

from ..holders import Holders
from ..tracker import DATA
from ..training import Training

FETCH = "torch.utils.data._utils.fetch"


def loader(training: Training) -> Callable[[Any], None]:
    """Mark the waiting for each batch."""

    def install(dataloader: Any) -> None:
        iterator = dataloader._BaseDataLoaderIter
        iterator.__next__ = training.phase(DATA, iterator.__next__)
        several = getattr(dataloader, "_MultiProcessingDataLoaderIter", None)
        if several is not None:
            several.__init__ = _described(several.__init__, training)

    return install


def _described(original: Callable[..., None], training: Training) -> Callable[..., None]:
    """Say, before workers are started, what of the dataset is many Python objects: reading them copies their pages."""

    @functools.wraps(original)
    def __init__(iterator: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
        from . import datasets

        datasets.tell(training.agent, loader)
        original(iterator, loader, *args, **kwargs)

    return __init__


def worker(training: Training) -> Callable[[Any], None]:
    """Let a worker process say that it is one, and look for what grows in it with each batch.

    One batch of one worker stands for as many training steps as there are workers.
    """

    def install(module: Any) -> None:
        original = module._worker_loop

        @functools.wraps(original)
        def _worker_loop(*args: Any, **kwargs: Any) -> Any:
            training.agent.set_role("dataloader")
            fetch = module._utils.fetch if hasattr(module, "_utils") else sys.modules.get(FETCH)
            for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
                kind = getattr(fetch, name, None)
                if kind is not None:
                    kind.fetch = _counted(kind.fetch, training.holders, module)
            return original(*args, **kwargs)

        module._worker_loop = _worker_loop

    return install


def _counted(original: Callable[..., Any], holders: Holders, module: Any) -> Callable[..., Any]:
    batches = 0

    @functools.wraps(original)
    def fetch(*args: Any, **kwargs: Any) -> Any:
        nonlocal batches
        result = original(*args, **kwargs)
        batches += 1
        info = module.get_worker_info()
        holders.step_ended(batches, 1.0 / max(1, info.num_workers if info is not None else 1))
        return result

    return fetch
