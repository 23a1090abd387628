"""Loaders have at most `workers` workers, each of which is a process with a Python and a data set of its own.

PyTorch hands out batches in the same order. Numbers stay the same bit for bit as far as the data set draws none: each
worker has generators of its own. A worker that sees PyTorch's, Python's or NumPy's generator move ends the program; a
generator that the data set made itself is not seen. It costs the time of fewer workers. It is refused where no loader
has more workers, and of streams, which divide themselves among workers.
"""

from __future__ import annotations

import functools
import random
import sys
from typing import Any, Callable, Dict, Tuple

from . import loaded
from .found import Found, Refused

FETCH = "torch.utils.data._utils.fetch"


def before(loader: Any, settings: Dict[str, Any]) -> str:
    """Before a loader starts its workers; what was changed, in words."""
    most, have = int(settings.get("workers", 1)), loader.num_workers
    if have <= most:
        return ""
    torch: Any = sys.modules["torch"]
    if isinstance(loader.dataset, torch.utils.data.IterableDataset):
        raise Refused("%s is a stream, which divides itself among workers" % type(loader.dataset).__name__)
    loader.num_workers = most
    return "%d workers in place of %d" % (most, have) if most > 1 else "1 worker in place of %d" % have


def prepare(found: Found, settings: Dict[str, Any]) -> Callable[[], str]:
    """Loaders were changed by now."""
    most = int(settings.get("workers", 1))
    return loaded.applied("loader_workers", "no DataLoader has more than %d worker%s" % (most, "s" * (most > 1)))


def worker(agent: Any, refuse: Callable[[Any, str], None]) -> Callable[[Any], None]:
    """Have workers look whether the data set draws numbers, also those that are started anew."""

    def install(module: Any) -> None:
        plain = module._worker_loop

        @functools.wraps(plain)
        def _worker_loop(*args: Any, **named: Any) -> Any:
            fetch = module._utils.fetch if hasattr(module, "_utils") else sys.modules.get(FETCH)
            kind: Any = getattr(fetch, "_MapDatasetFetcher", None)
            if kind is not None:
                kind.fetch = _watched(kind.fetch, agent, refuse)
            return plain(*args, **named)

        module._worker_loop = _worker_loop

    return install


def _watched(plain: Callable[..., Any], agent: Any, refuse: Callable[[Any, str], None]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def fetch(*args: Any, **named: Any) -> Any:
        had = _drawn()
        result = plain(*args, **named)
        for name, state in _drawn().items():
            if had.get(name, state) != state:
                refuse(agent, "loader_workers: the data set draws numbers from %s, of which each worker has one" % name)
        return result

    return fetch


def _drawn() -> Dict[str, Tuple[Any, ...]]:
    """The states of the generators that a data set may draw from."""
    torch: Any = sys.modules["torch"]
    states: Dict[str, Tuple[Any, ...]] = {
        "PyTorch's generator": (torch.get_rng_state().numpy().tobytes(),),
        "Python's generator": random.getstate(),
    }
    numpy: Any = sys.modules.get("numpy.random")
    if numpy is not None:
        said = numpy.get_state()
        states["NumPy's generator"] = (said[1].tobytes(), *said[2:])
    return states
