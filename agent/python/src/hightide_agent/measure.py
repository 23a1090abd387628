"""What a few items of a container keep alive, as far as they do not share it.

Opens what keeps things unseen, too: closures, partial objects, waiting generators, exceptions with their frames.
Nothing of the program is called: built-in types are opened by hand, the rest by the collector's own view of them.
"""

from __future__ import annotations

import _thread
import builtins
import gc
import sys
import types
from collections import deque
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CodeType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    ModuleType,
    TracebackType,
)  # fmt: skip
from typing import Any, Dict, List, Set

from . import sizes
from .frames import OPTIMIZED, variables
from .insides import bases, is_users_type, named

DEEP = 12  # levels inside an item that are measured: a module in a module has its weights at the eighth
VISITS = 2000
WIDE = 256  # items of one container
LARGE = 512  # bytes from which text and bytes count as data
_NUMBERS = frozenset((int, float, complex))
_TABLES = frozenset((list, tuple, set, frozenset, dict))
_LEAVES = frozenset((int, float, bool, complex, type(None), type, ModuleType, CodeType, range))
# Modules whose objects hold no more than meets the eye, or are measured above.
_SMALL = frozenset(
    ("builtins", "types", "re", "datetime", "decimal", "_decimal", "_weakref", "_thread", "numpy", "torch")
)
# The interpreter's own by name: a library's type whose name has no module says that it is of builtins, too.
_OWN = frozenset(kind for module in (builtins, types) for kind in vars(module).values() if isinstance(kind, type))
_traceback = BaseException.__dict__["__traceback__"]
_FRAMES = {GeneratorType: "gi_frame", CoroutineType: "cr_frame", AsyncGeneratorType: "ag_frame"}


class Measure:
    """Adds up what items hold; what several of them hold is nobody's."""

    def __init__(self, tensors: Any) -> None:
        self.known = tensors
        self.graph = False
        self.opaque = False  # an item leads to something of which nothing is known
        self.rough = False  # or to what is not counted to the end, or by a guess: beside the data it is not known
        self._bytes: Dict[Any, float] = {}
        self._data: Set[Any] = set()  # of those, which are arrays and the like
        self._owners: Dict[Any, int] = {}
        self._items = 0
        self._running = _running()

    def add(self, *item: Any) -> None:
        """Measure one item, as a value with its key."""
        self._items += 1
        self._visits = 0
        self._seen: Set[Any] = set()
        pending = deque((part, 0) for part in item)
        try:
            while pending:  # the nearest first
                thing, depth = pending.popleft()
                pending.extend((part, depth + 1) for part in self._opened(thing, depth))
        except RuntimeError:  # another thread changed something in it meanwhile
            pass

    def empty(self) -> bool:
        """Whether there was nothing to measure."""
        return self._items == 0

    def total(self) -> float:
        """Bytes that an item holds alone, in the mean."""
        return sum(size for key, size in self._bytes.items() if self._owners[key] == 1) / max(self._items, 1)

    def data(self) -> float:
        """What of it is in arrays, tensors and large strings of bytes."""
        return sum(self._bytes[key] for key in self._data if self._owners[key] == 1) / max(self._items, 1)

    def _count(self, key: Any, size: float, data: bool = False) -> None:
        if key in self._seen:
            return
        self._seen.add(key)
        self._bytes[key] = size
        self._owners[key] = self._owners.get(key, 0) + 1
        if data:
            self._data.add(key)

    def _opened(self, thing: Any, depth: int) -> List[Any]:
        """What a thing leads to, once it is counted."""
        self._visits += 1
        kind = type(thing)
        self.rough = self.rough or self._visits > VISITS
        if kind in _NUMBERS:
            self._count(id(thing), _number(thing))
        if id(thing) in self._seen or self._visits > VISITS or kind in _LEAVES or isinstance(thing, type):
            return []
        if kind is BuiltinFunctionType:  # of a module, or of what it is a method of
            return [thing.__self__]
        tensors = self.known.get(kind)
        if tensors is not None:
            self._seen.add(id(thing))
            return self._tensor(tensors, thing)
        if kind is str or kind is bytes or kind is bytearray:
            self._count(id(thing), len(thing) + 50, len(thing) >= LARGE)
            return []
        size, shared = _array(thing, kind)
        if size >= 0:
            self._seen.add(id(thing))
            self._count(("array", shared), size, True)
            return []
        if kind in _TABLES:
            self._count(id(thing), sys.getsizeof(thing) + self._beyond(thing))
        else:
            self._count(id(thing), 32.0)
            self.rough = True
        if depth >= DEEP:
            self.rough = True
            return []
        parts = [part for part in self._parts(thing, kind) if not isinstance(part, type)]
        self.opaque = self.opaque or (not parts and _is_foreign(kind))
        return parts

    def _beyond(self, table: Any) -> float:
        """Bytes of the numbers of a table beyond those that are opened, if it has nothing else."""
        beyond = len(table) - WIDE
        if beyond <= 0:
            return 0.0
        some = list(table)[:WIDE]
        if type(table) is dict or not all(type(part) in _NUMBERS for part in some):
            self.rough = True
            return 0.0
        return beyond * sum(map(_number, some)) / WIDE

    def _tensor(self, tensors: Any, tensor: Any) -> List[Any]:
        self.graph = self.graph or tensors.has_graph(tensor)
        try:
            storage, size = tensors.storage(tensor)
            self._count(("storage", storage), size, True)
            return list(tensors.beside(tensor))
        except Exception:  # it has none
            return []

    def _parts(self, thing: Any, kind: type) -> List[Any]:
        if kind in (list, tuple, set, frozenset):
            return list(thing)[:WIDE]
        if kind is dict:
            return [] if "__builtins__" in thing else [*list(thing.values())[:WIDE], *list(thing)[:WIDE]]
        if kind is FunctionType:
            return [*(thing.__closure__ or ()), *(thing.__defaults__ or ()), *thing.__dict__.values()]
        if kind in _FRAMES:
            frame = getattr(thing, _FRAMES[kind])
            return [] if frame is None else self._variables(frame)
        if kind is TracebackType:
            return [*self._variables(thing.tb_frame), thing.tb_next]
        if kind is FrameType:
            return self._variables(thing)
        if isinstance(thing, BaseException):
            return [_traceback.__get__(thing), *BaseException.__dict__["args"].__get__(thing)]
        return gc.get_referents(thing)[:WIDE]

    def _variables(self, frame: Any) -> List[Any]:
        """Of a function that is over; one that runs holds what is in use, and a module's are everybody's."""
        if not frame.f_code.co_flags & OPTIMIZED or id(frame) in self._running:
            return []
        return list(variables(frame).values())


def _number(number: Any) -> int:
    """Bytes of a number; small ones are there once."""
    return 0 if type(number) is int and -5 <= number <= 256 else sys.getsizeof(number)


def _is_foreign(kind: type) -> bool:
    """Whether objects of a type that lead nowhere may yet hold much: a library may keep memory in them unseen."""
    made_of = [base for base in bases(kind) if not is_users_type(base)]
    if not made_of:  # a type in C that is not made ready
        return True
    module = named(made_of[0])[0].partition(".")[0]
    return made_of[0] not in _OWN if module == "builtins" else module not in _SMALL


def _running() -> Set[int]:
    """Frames that run, but for this one and its caller's: those are gone soon, and others may get their ids."""
    running = set()
    frame: Any
    for thread, frame in sys._current_frames().items():
        if thread == _thread.get_ident():
            frame = sys._getframe(2)
        while frame is not None:
            running.add(id(frame))
            frame = frame.f_back
    return running  # with no frame in a variable: this one would keep itself, and all that its callers hold


def _array(thing: Any, kind: type) -> Any:
    try:
        return sizes.bytes_of(thing, kind)
    except Exception:  # another version of a library
        return -1, None
