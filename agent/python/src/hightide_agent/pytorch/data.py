"""DataLoader: the data phase in the process that trains, and the workers' role."""

from __future__ import annotations

import functools
from typing import Any, Callable

from ..agent import Agent
from ..tracker import DATA, Tracker


def loader(agent: Agent, tracker: Tracker) -> Callable[[Any], None]:
    """Mark the waiting for each batch."""

    def install(dataloader: Any) -> None:
        iterator = dataloader._BaseDataLoaderIter
        original = iterator.__next__

        @functools.wraps(original)
        def __next__(self: Any) -> Any:
            if not tracker.recording:
                return original(self)
            entered = tracker.enter(DATA)
            try:
                return original(self)
            finally:
                if entered:
                    tracker.leave(DATA)

        iterator.__next__ = __next__

    return install


def worker(agent: Agent) -> Callable[[Any], None]:
    """Let a worker process say that it is one."""

    def install(module: Any) -> None:
        original = module._worker_loop

        @functools.wraps(original)
        def _worker_loop(*args: Any, **kwargs: Any) -> Any:
            agent.set_role("dataloader")
            return original(*args, **kwargs)

        module._worker_loop = _worker_loop

    return install
