"""A profile as pprof reads it: what lines hold of devices."""

from __future__ import annotations

import gzip
from typing import Callable, Dict, Iterable, List, Tuple

from . import wire

Place = Tuple[str, int, str]  # file, line, function
Held = Tuple[str, Place, int, int]  # device, where, blocks, bytes


def encoded(held: Iterable[Held]) -> bytes:
    """That profile, compressed."""
    texts: Dict[str, int] = {"": 0}

    def text(word: str) -> int:
        return texts.setdefault(word, len(texts))

    kinds = [wire.message(1, wire.number(1, text(kind)) + wire.number(2, text(unit)))
             for kind, unit in (("objects", "count"), ("space", "bytes"))]  # fmt: skip
    samples: List[bytes] = []
    places: Dict[Place, int] = {}
    for device, place, blocks, bytes in held:
        at = places.setdefault(place, len(places) + 1)
        label = wire.number(1, text("device")) + wire.number(2, text(device))
        values = wire.varint(blocks) + wire.varint(bytes)
        samples.append(
            wire.message(2, wire.message(1, wire.varint(at)) + wire.message(2, values) + wire.message(3, label))
        )
    code = b"".join(_location(at, place, text) for place, at in places.items())
    default = wire.number(14, text("space"))
    table = b"".join(wire.message(6, word.encode("utf-8", "replace")) for word in texts)
    return gzip.compress(b"".join(kinds) + b"".join(samples) + code + table + default, 6)


def _location(at: int, place: Place, text: Callable[[str], int]) -> bytes:
    file, line, function = place
    name = (
        wire.number(1, at)
        + wire.number(2, text(function))
        + wire.number(3, text(function))
        + wire.number(4, text(file))
    )
    where = wire.number(1, at) + wire.message(4, wire.number(1, at) + wire.number(2, line))
    return wire.message(4, where) + wire.message(5, name)
