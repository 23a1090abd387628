"""What is asked of JAX's arrays leaves nothing behind. In JAX 0.4 an array keeps its shards, and they keep it, once
they were asked for; nothing collects that."""

from __future__ import annotations

import functools
import gc
import weakref
from typing import Any, List

from hightide_agent.imagine.xla import held
from hightide_agent.xla import loops


class Array:
    """As those of JAX 0.4."""

    shape, dtype = (4,), "float32"

    @functools.cached_property
    def addressable_shards(self) -> List[Any]:
        return [self]


def test_shards_do_not_keep_an_array() -> None:
    gc.disable()
    try:
        array, kept = Array(), Array()
        assert held.shards(array) == [array]
        found: List[Any] = []
        loops._arrays({"w": [array]}, found, loops.DEPTH)
        assert found == [array]
        assert (
            kept.addressable_shards == held.shards(kept) and "addressable_shards" in kept.__dict__
        )  # the program's own
        ended = weakref.ref(array)
        found.clear()
        del array
        assert ended() is None
    finally:
        gc.enable()
