"""What may grow besides containers: caches of functions, arrays, text and buffers, chains of objects.

A reading is a number of items of something that a name leads to. Types are known by their names, so that no library is
imported; what is called is the library's own, quick, and may raise.
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from .insides import named

MAX_CHAIN = 4000  # objects of a chain that are counted
TEXTS = frozenset((str, bytes, bytearray))
LONG = 1 << 16  # characters or bytes from which on one of these is looked at


class Reading(NamedTuple):
    """How large something is."""

    kind: str
    items: int
    contains: str  # what an item is
    replaced: bool = False  # it grows by being replaced: its name is the trail, and the source must say so
    bytes: int = 0  # of all items, where they are known without looking at them
    bound: int = 0  # items that it has at most
    bound_by: str = ""  # what says so


class Chain(NamedTuple):
    """Objects of one type, each an attribute of the one before."""

    length: int


def _array(thing: Any) -> Reading:
    return Reading("array", array_bytes(thing), "byte", True)


def _of_bytes(kind: str, replaced: bool = False) -> Callable[[Any], Reading]:
    """How text or a buffer is counted: by the memory that it takes, with what is kept to grow into."""
    return lambda t: Reading(kind, sys.getsizeof(t), "byte", replaced)


def _lru_cache(thing: Any) -> Reading:
    info = thing.cache_info()
    bound = info.maxsize or 0
    return Reading("lru_cache", info.currsize, "result", bound=bound, bound_by="maxsize=%d" % bound if bound else "")


def _table(thing: Any) -> Reading:
    name = _named(type(thing))
    return Reading(name[1], _TABLE_BYTES[name](thing), "byte", True)


_COUNTED: Dict[Tuple[str, str], Callable[[Any], Reading]] = {
    ("_queue", "SimpleQueue"): lambda t: Reading("queue", t.qsize(), ""),
    ("functools", "_lru_cache_wrapper"): _lru_cache,
    ("jaxlib", "PjitFunction"): lambda t: Reading("compiled programs", t._cache_size(), "program"),
    ("jax", "PjitFunction"): lambda t: Reading("compiled programs", t._cache_size(), "program"),
    ("tensorflow", "Function"): lambda t: Reading("traced graphs", t.experimental_get_tracing_count(), "graph"),
    ("numpy", "ndarray"): _array,
    ("pandas", "DataFrame"): _table,
    ("pandas", "Series"): _table,
    ("polars", "DataFrame"): _table,
    ("polars", "Series"): _table,
    ("pyarrow", "Table"): _table,
    ("builtins", "str"): _of_bytes("str", replaced=True),
    ("builtins", "bytes"): _of_bytes("bytes", replaced=True),
    ("builtins", "bytearray"): _of_bytes("bytearray"),
    ("array", "array"): _of_bytes("array.array"),
    ("_io", "BytesIO"): _of_bytes("BytesIO"),
    # Of one to four bytes each, and it does not say how many.
    ("_io", "StringIO"): lambda t: Reading("StringIO", t.tell(), "character"),
}
_ALWAYS: Dict[type, Optional[Callable[[Any], Reading]]] = {
    FunctionType: None,
    Chain: lambda t: Reading("chain", t.length, "object", True),
}
_known = dict(_ALWAYS)


def counter(kind: type) -> Optional[Callable[[Any], Reading]]:
    """How objects of a type are counted; None: they are not."""
    try:
        return _known[kind]
    except KeyError:
        _known[kind] = found = _COUNTED.get(_named(kind))
        return found


def forget() -> None:
    """After a scan: a table by class would keep the program's classes alive."""
    _known.clear()
    _known.update(_ALWAYS)


def _named(kind: type) -> Tuple[str, str]:
    module, name = named(kind)
    return module.partition(".")[0], name


def compiled(function: Any) -> Optional[Reading]:
    """The graphs that torch.compile keeps of a function."""
    dynamo = sys.modules.get("torch._C._dynamo.eval_frame")
    inner = function.__dict__.get("_torchdynamo_orig_callable")
    code = getattr(inner, "__code__", None)
    if dynamo is None or code is None:
        return None
    return Reading("compiled graphs", len(dynamo._debug_get_cache_entry_list(code)), "graph")


def columns(thing: Any) -> Optional[Reading]:
    """The columns of a table that grows in place."""
    if _named(type(thing)) != ("pandas", "DataFrame"):
        return None
    return Reading("DataFrame", len(thing._mgr.items), "column", bytes=frame_bytes(thing))


def array_bytes(array: Any) -> int:
    """What keeps a NumPy array alive: the array itself, or the one that it is a view of."""
    base: Any = array.base
    return int(base.nbytes) if type(base) is type(array) else int(array.nbytes)


def frame_bytes(frame: Any) -> int:
    """The blocks of a pandas DataFrame or Series; of those that are views of one array, that once."""
    wholes = {}
    for block in frame._mgr.blocks:
        values = block.values
        base: Any = getattr(values, "base", None)
        whole: Any = base if type(base) is type(values) else values
        wholes[id(whole)] = int(whole.nbytes)
    return sum(wholes.values())


# Bytes of tables, as their libraries tell them at once.
_TABLE_BYTES: Dict[Tuple[str, str], Callable[[Any], int]] = {
    ("pandas", "DataFrame"): frame_bytes,
    ("pandas", "Series"): frame_bytes,
    ("polars", "DataFrame"): lambda t: int(t.estimated_size()),
    ("polars", "Series"): lambda t: int(t.estimated_size()),
    ("pyarrow", "Table"): lambda t: int(t.get_total_buffer_size()),
    ("pyarrow", "RecordBatch"): lambda t: int(t.get_total_buffer_size()),
}


def bytes_of(thing: Any, kind: type) -> Tuple[int, Any]:
    """Bytes of an array, of whatever library, and something equal where two share them; -1 of what is none."""
    name = _named(kind)
    if name == ("numpy", "ndarray"):
        base: Any = thing.base if type(thing.base) is kind else thing
        return int(base.nbytes), id(base)
    if name in _TABLE_BYTES:
        return _TABLE_BYTES[name](thing), id(thing)
    if name[1] == "ArrayImpl" and name[0] in ("jaxlib", "jax"):
        return int(thing.nbytes), id(thing)
    if name == ("tensorflow", "EagerTensor"):
        return int(thing._num_elements()) * int(thing.dtype.size), id(thing)
    return -1, None


def is_array(kind: type) -> bool:
    """Whether objects of a type are arrays or tables that extent knows."""
    name = _named(kind)
    return name in _EXTENTS or name in _TABLE_BYTES or (name[1] == "ArrayImpl" and name[0] in ("jaxlib", "jax"))


def extent(thing: Any) -> Tuple[int, int, int]:
    """Elements of an array, their bytes, and the bytes that it keeps alive: more where it is a view. May raise."""
    kind = type(thing)
    name = _named(kind)
    if name in _TABLE_BYTES:
        size = _TABLE_BYTES[name](thing)
        shape = thing.shape
        return (int(shape[0]) * int(shape[1] if len(shape) > 1 else 1)), size, size
    elements, seen = _EXTENTS.get(name, _size_of)(thing)
    return elements, seen, max(bytes_of(thing, kind)[0], seen)


def _size_of(thing: Any) -> Tuple[int, int]:
    return int(thing.size), int(thing.nbytes)


_EXTENTS: Dict[Tuple[str, str], Callable[[Any], Tuple[int, int]]] = {
    ("numpy", "ndarray"): _size_of,
    ("tensorflow", "EagerTensor"): lambda t: (int(t._num_elements()), int(t._num_elements()) * int(t.dtype.size)),
}


def chain(thing: Any, attribute: str, variables: Callable[[Any], Any]) -> Chain:
    """How many objects of its type hang on an object by one attribute; 0 where there are too many to count."""
    kind, length = type(thing), 0
    while type(thing) is kind:
        length += 1
        if length > MAX_CHAIN:
            return Chain(0)
        thing = (variables(thing) or {}).get(attribute)
    return Chain(length)


def readings(thing: Any) -> List[Reading]:
    """All that can be counted of something."""
    found: List[Optional[Reading]] = []
    kind = type(thing)
    try:
        if kind is FunctionType:
            found.append(compiled(thing))
        else:
            count = counter(kind)
            found += [count(thing)] if count is not None else []
            found.append(columns(thing))
    except Exception:  # another version of a library
        return []
    return [reading for reading in found if reading is not None]
