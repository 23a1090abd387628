"""The peak of XLA's allocator, and what it may take at most.

Device.memory_stats at each step's end: peak_bytes_in_use ─▶ allocated     peak_pool_bytes ─▶ reserved
                                        bytes_limit ─▶ three quarters of a device, unless the program says otherwise
"""

from __future__ import annotations

import os
from typing import Any, Iterator, Tuple

from ... import oom
from ...training import Training
from ..goals import Goals
from ..ledger import Ledger
from ..marks import Mark, Marks
from .calls import Calls


class Steady(Marks):
    """Those of JAX."""

    framework = "jax"

    def __init__(self, training: Training, ledger: Ledger, calls: Calls, goals: Goals) -> None:
        super().__init__(training, ledger, goals)
        self.calls = calls

    def forget(self) -> None:
        """In a process that was forked."""
        super().forget()
        self.calls.held.forget()

    def read(self) -> Iterator[Mark]:
        """Of each GPU."""
        for device in self.calls.held.devices():
            stats = device.memory_stats() or {}
            yield Mark(
                device.local_hardware_id or 0,
                stats.get("bytes_in_use", 0),
                stats.get("peak_bytes_in_use", 0),
                _taken(stats),
                stats.get("bytes_limit") or None,
            )

    def unread(self) -> bool:
        """Say so where a call failed and something that came of it is left: JAX raises the error where it is read."""
        error = self.calls.failed()
        if error is not None:
            oom.notice(self.agent, error, self.tracker.current_step())
            self.agent.fact("jax.unread_error", type(error).__name__)
        return error is not None

    def tell(self, short: bool) -> None:
        """Say what held the peak; `short`: the program ends for lack of memory."""
        self.calls.held.tell(short)

    def preallocation(self) -> str:
        """What JAX's variables say of how it takes memory."""
        allocator = os.environ.get("XLA_PYTHON_CLIENT_ALLOCATOR", "default").lower()
        if allocator in ("platform", "cuda_async"):
            return "allocator %s" % allocator
        if os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE", "true").lower() in ("false", "0"):
            return "none: it grows"
        fraction, found = _fraction()
        return "%s %% of the memory at the start%s" % (fraction, found)


def _taken(stats: Any) -> int:
    """Most that the allocator took from the device; a version that does not tell has taken all that it may."""
    return int(stats.get("peak_pool_bytes", stats.get("pool_bytes", stats.get("bytes_limit", 0))))


def _fraction() -> Tuple[str, str]:
    text = os.environ.get("XLA_PYTHON_CLIENT_MEM_FRACTION", os.environ.get("XLA_CLIENT_MEM_FRACTION", ""))
    try:
        return "%g" % (100 * float(text)), ", as XLA_PYTHON_CLIENT_MEM_FRACTION says"
    except ValueError:
        return "75", ", which is JAX's default"
