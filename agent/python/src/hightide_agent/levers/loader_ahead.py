"""Loaders fetch one batch ahead for each worker, and copy none into pinned memory.

PyTorch's workers fetch two batches ahead each, and more where the program says so; a pinned batch is a copy beside it.
Numbers stay the same bit for bit. It costs time where workers do not keep up, and copies to the device that wait. It
is refused where no loader fetches ahead or pins memory.
"""

from __future__ import annotations

from typing import Any, Callable, Dict

from . import loaded
from .found import Found


def before(loader: Any, settings: Dict[str, Any]) -> str:
    """Before a loader starts its workers; what was changed, in words."""
    parts = []
    ahead = getattr(loader, "prefetch_factor", None)
    if loader.num_workers and ahead and ahead > 1:
        loader.prefetch_factor = 1
        parts.append("1 batch ahead in place of %d" % ahead)
    if loader.pin_memory:
        loader.pin_memory = False
        parts.append("no pinned memory")
    return ", ".join(parts)


def prepare(found: Found, settings: Dict[str, Any]) -> Callable[[], str]:
    """Loaders were changed by now."""
    return loaded.applied("loader_ahead", "no DataLoader fetches more than a batch ahead or pins memory")
