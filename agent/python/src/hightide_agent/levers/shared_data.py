"""Workers of a DataLoader that are started anew (spawn, forkserver) share the data set's arrays, one copy for all.

Each would get a copy of its own by pickling. Here NumPy arrays of 1 MiB or more lie in one file in memory, which this
process and its workers map privately: what one of them writes, no other sees, as with copies. Numbers stay the same bit
for bit. It costs each array twice while it is copied. An array that this process has written to since is copied to
workers as before. It is refused where workers are forked, which share all pages already, where there are none, and
where the data set's attributes have no such array. Tensors are left to PyTorch, which shares them.
"""

from __future__ import annotations

import mmap
import os
import sys
import weakref
from types import FunctionType, MethodType, ModuleType
from typing import Any, Callable, Dict, Iterator, List, Tuple

from . import loaded
from .found import Found

LEAST = 1 << 20  # bytes of an array
DEEPEST, MOST_LOOKED, MOST_ITEMS = 4, 1000, 64
PRIVATE = mmap.MAP_PRIVATE if sys.platform != "win32" else 0

shared: Dict[int, Shared] = {}
"""By the id of the array that is in the data set now."""


class Shared:
    """One array in a file that only memory has."""

    def __init__(self, numpy: Any, array: Any) -> None:
        self.size, self.dtype, self.shape = array.nbytes, array.dtype, array.shape
        self.order = "C" if array.flags.c_contiguous else "F"
        self.written = False
        self.file = os.memfd_create("hightide data set")
        os.ftruncate(self.file, self.size)
        with mmap.mmap(self.file, self.size) as everyone:
            into = numpy.ndarray(self.shape, self.dtype, everyone, order=self.order)
            into[...] = array
            del into
        view = private(self.file, self.size, self.dtype, self.shape, self.order)
        view.flags.writeable = array.flags.writeable
        self.view = weakref.ref(view, self._gone)
        self.key, self.address = id(view), view.__array_interface__["data"][0]
        self.made = view  # until it is in the data set

    def _gone(self, _: Any) -> None:
        shared.pop(self.key, None)
        os.close(self.file)

    def look(self) -> None:
        """See whether this process has written to it, which makes pages of its own."""
        with open("/proc/self/smaps", "rb") as maps:
            inside = False
            for line in maps:
                first = line.split(None, 1)[0]
                if b"-" in first and not first.endswith(b":"):
                    begin, end = (int(part, 16) for part in first.split(b"-"))
                    inside = begin < self.address + self.size and self.address < end
                elif inside and first in (b"Anonymous:", b"Swap:") and int(line.split()[1]):
                    self.written = True


def private(file: int, size: int, dtype: Any, shape: Tuple[int, ...], order: str) -> Any:
    """The array as this process has it: what is written here stays here."""
    import numpy

    mapped = mmap.mmap(file, size, flags=PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    return numpy.ndarray(shape, dtype, mapped, order=order)


def rebuilt(duplicate: Any, *more: Any) -> Any:
    """In a worker: the array out of what was sent to it."""
    file = duplicate.detach()
    try:
        return private(file, *more)
    finally:
        os.close(file)


def _reduced(array: Any) -> Any:
    """How an array is sent to another process."""
    from multiprocessing import context, reduction

    one = shared.get(id(array))
    if one is None or one.written or context.get_spawning_popen() is None:
        return array.__reduce_ex__(4)
    return rebuilt, (reduction.DupFd(one.file), one.size, one.dtype, one.shape, one.order)


def before(loader: Any, settings: Dict[str, Any]) -> str:
    """Before a loader starts its workers; what is shared, in words."""
    import multiprocessing
    from multiprocessing.reduction import ForkingPickler

    numpy: Any = sys.modules.get("numpy")
    context = loader.multiprocessing_context or multiprocessing.get_context()
    if not loader.num_workers or numpy is None or not hasattr(os, "memfd_create"):
        return ""
    if context.get_start_method() == "fork":
        return ""
    for one in list(shared.values()):
        one.look()
    names: List[str] = []
    total = 0
    made: Dict[int, Tuple[Any, Shared]] = {}  # an array may have two names
    for name, place, key, array in list(_arrays(numpy, loader.dataset)):
        if id(array) not in shared:
            if id(array) not in made:
                one = Shared(numpy, array)
                shared[one.key], made[id(array)] = one, (array, one)  # the array keeps its id until all names are seen
            place[key] = made[id(array)][1].made
        names.append(name)
        total += array.nbytes
    for _, one in made.values():
        del one.made
    if not names:
        return ""
    ForkingPickler.register(numpy.ndarray, _reduced)
    if len(names) > 3:
        names[3:] = ["%d more" % (len(names) - 3)]
    return "%s, %d MiB" % (", ".join(names), total >> 20)


def _arrays(numpy: Any, dataset: Any) -> Iterator[Tuple[str, Any, Any, Any]]:
    """(name, container, key, array) of what the data set and those in it hold as attributes, and in short lists."""
    seen, left = {id(dataset)}, [(type(dataset).__name__, dataset, 0)]
    while left and len(seen) < MOST_LOOKED:
        name, owner, depth = left.pop(0)
        place: Any = owner if isinstance(owner, (list, dict)) else getattr(owner, "__dict__", None)
        if type(place) not in (list, dict) or len(place) > MOST_ITEMS:
            continue
        for key, value in list(enumerate(place) if isinstance(place, list) else place.items()):
            inner = "%s.%s" % (name, key) if place is not owner else "%s[%r]" % (name, key)
            if type(value) is numpy.ndarray:
                whole = value.flags.c_contiguous or value.flags.f_contiguous
                if value.nbytes >= LEAST and whole and not value.dtype.hasobject:
                    yield inner, place, key, value
            elif id(value) not in seen and depth < DEEPEST and not isinstance(value, SKIPPED):
                seen.add(id(value))
                left.append((inner, value, depth + 1))


SKIPPED = (ModuleType, FunctionType, MethodType, type, str, bytes, int, float)


def prepare(found: Found, settings: Dict[str, Any]) -> Callable[[], str]:
    """Loaders were changed by now."""
    return loaded.applied("shared_data", "no array of 1 MiB or more of a data set is copied to a worker")
