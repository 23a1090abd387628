"""Numbers that the program reads of JAX's arrays.

A whole array that is copied to the host (numpy.asarray, jax.device_get) is counted by the device alone, with its line.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Tuple

from ..ledger import Ledger
from ..reads import Reads

READERS = ("__bool__", "__int__", "__float__", "__index__", "item", "tolist")


def install(ledger: Ledger) -> Callable[[Any], None]:
    """Look at each read of an array on a GPU; called with the module of JAX's arrays."""
    reads = OfJAX(ledger)

    def wrap(module: Any) -> None:
        for name in READERS:
            original = getattr(module.ArrayImpl, name, None)
            if original is not None:
                setattr(module.ArrayImpl, name, reads.wrapped(original))

    return wrap


class OfJAX(Reads):
    """Those of JAX."""

    own = ("/jax/", "/jaxlib/")

    def place(self, array: Any) -> Optional[Tuple[int, int]]:
        """Where an array lies on a GPU, and its bytes; None: it lies on none."""
        if not array.size or next(iter(array.devices())).platform != "gpu":
            return None
        return array.addressable_data(0).unsafe_buffer_pointer(), array.nbytes

    def kind(self, array: Any) -> Tuple[str, int]:
        """The type of its numbers (bool, int, float), and how many it has."""
        return {"b": "bool", "i": "int", "u": "int"}.get(array.dtype.kind, "float"), array.size
