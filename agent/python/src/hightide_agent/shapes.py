"""The shapes for which a function was traced: which argument has many, and in which of its dimensions.

float32[8,32], float32[8,48], float32[8,64] ─▶ x: float32[8,32 to 64], lengths 32, 48 and 64
"""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, Set, Union

MOST = 4096  # types of one argument that are told apart
LISTED = 64  # lengths that are told; of more none is

TYPE = re.compile(r"(\w+)([\[(])([\d, ]*)([\])])\Z")  # of JAX float32[8,16], of TensorFlow float32(8, 16)


class Shapes:
    """Those of one function."""

    def __init__(self) -> None:
        self._first: Mapping[str, str] = {}
        self._types: Dict[str, Set[str]] = {}  # of arguments that have changed

    def add(self, arguments: Mapping[str, str]) -> bool:
        """It was traced for these; whether one of them is of a shape that it was not traced for before."""
        self._first = self._first or arguments
        new = False
        for name, text in arguments.items():
            before = self._first.get(name)
            if before is not None and (name in self._types or text != before):
                types = self._types.setdefault(name, {before})
                if len(types) < MOST and text not in types:
                    types.add(text)
                    new = True
        return new

    def told(self) -> Dict[str, Union[str, int]]:
        """What a record says; nothing while no argument has arrays of several shapes, all of one type and rank."""
        name = max(self._types, key=lambda name: len(self._types[name]), default="")
        found = [TYPE.match(text) for text in self._types.get(name, ())]
        sizes: List[List[int]] = []
        for one in found:
            if one is None or one.group(1) != (found[0] or one).group(1):
                return {}
            sizes.append([int(size) for size in re.findall(r"\d+", one.group(3))])
        if len({len(one) for one in sizes}) != 1:
            return {}
        axes = [sorted(set(axis)) for axis in zip(*sizes)]
        text = ",".join(str(axis[0]) if len(axis) == 1 else "%d to %d" % (axis[0], axis[-1]) for axis in axes)
        record: Dict[str, Union[str, int]] = {
            "shaped": name,
            "shapes": len(sizes),
            "shape": "%s[%s]" % ((found[0] or [""])[1], text),
        }
        many = [axis for axis in axes if len(axis) > 1]
        if len(many) == 1 and len(many[0]) <= LISTED:
            record["lengths"] = ",".join(map(str, many[0]))
        return record
