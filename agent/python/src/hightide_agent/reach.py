"""What the program's own names reach: containers and tensors, with the name that leads to each.

    roots.py: stacks, modules, tasks … ─▶ attributes, items, closures, waiting frames ─▶ Found(name, owner, object)

Nothing here calls the program's code: only built-in types are measured and opened, and insides.py reads objects past
their classes. The walk is bounded in time and depth; what it yields must not be kept beyond the scan.
"""

from __future__ import annotations

import _thread
import gc
import sys
from collections import OrderedDict, defaultdict, deque
from contextvars import Context, ContextVar
from functools import partial
from itertools import islice
from time import thread_time_ns
from types import (
    AsyncGeneratorType,
    CellType,
    CoroutineType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)  # fmt: skip
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from . import sizes
from .frames import variables
from .insides import (
    as_written,
    bases,
    container_base,
    copied,
    in_slots,
    instance_dict,
    is_hidden,
    is_users_type,
    length,
    named,
    own_dict,
)
from .places import is_users

if TYPE_CHECKING:
    from .tensors import Tensors

MAX_DEPTH = 6
WIDE = 64  # items of a longer container are not all opened, only the newest FEW
FEW = 3
LIMITLESS = 1 << 31  # as which multiprocessing keeps no bound
MANY = 100  # variables, from which on an object or a module may be used as a table
LARGEST = 256  # variables of a library's object that is opened
_PLAIN = frozenset((int, float, str, bytes, bool, type(None), complex, range, slice, bytearray, type(Ellipsis)))
_DICTS = (dict, OrderedDict, defaultdict)
WAITING: Dict[Any, str] = {
    GeneratorType: "gi",
    CoroutineType: "cr",
    AsyncGeneratorType: "ag",
}  # with the prefix of their attributes
# Built-in objects that lead to what they were made of: an iterator to what it goes through, a wrapper to its function.
_AROUND = frozenset((partial, staticmethod, classmethod, property, enumerate, filter, map, zip))


class Owner(NamedTuple):
    """Where the source of a name is: its file, and the function whose local it is."""

    file: str
    function: str
    inside: Optional[Tuple[int, str]]  # first line and name of the function's code; None: not a local
    attribute: bool


class Found(NamedTuple):
    """Something that a name leads to."""

    name: str  # as the program says it
    leaf: str  # the identifier to look for in the source
    owner: Owner
    thing: Any
    kind: str = ""  # what it is called, if not by its type
    keys: Tuple[Any, ...] = ()  # that lead from the identifier to it, as far as they are text or whole numbers
    of: Any = None  # the object whose attribute it is
    bound: int = 0  # entries that it has at most, where what stands for it says so


class _Stands(NamedTuple):
    """The attribute of a library's object that stands for the object."""

    attribute: str
    kind: str = ""  # what the object is called, if not by its class
    bound: str = ""  # its attribute that has the bound


_STANDS = {
    ("queue", "Queue"): _Stands("queue", "queue", "maxsize"),
    ("asyncio.queues", "Queue"): _Stands("_queue", "queue", "_maxsize"),
    ("multiprocessing.queues", "Queue"): _Stands("_buffer", "queue", "_maxsize"),
    ("concurrent.futures.thread", "ThreadPoolExecutor"): _Stands("_work_queue", "backlog of executor"),
    ("concurrent.futures.process", "ProcessPoolExecutor"): _Stands("_pending_work_items", "backlog of executor"),
    ("multiprocessing.pool", "Pool"): _Stands("_taskqueue", "backlog of pool"),
    ("weakref", "WeakKeyDictionary"): _Stands("data"),
    ("collections", "ChainMap"): _Stands("maps"),
    ("contextlib", "_BaseExitStack"): _Stands("_exit_callbacks", "exit stack"),
    ("tarfile", "TarFile"): _Stands("members", "index of archive"),
    ("collections", "UserDict"): _Stands("data"),
    ("collections", "UserList"): _Stands("data"),
}


def walk(roots: Iterable[Found], tensors: Mapping[type, Tensors], deadline_ns: int) -> Iterator[Found]:
    """Yield all within reach that can be counted, nearest first, until the deadline in processor time."""
    queue: deque[Tuple[Found, int]] = deque((found, 0) for found in roots)
    seen: set[int] = set()
    count = 0
    while queue:
        found, depth = queue.popleft()
        count += 1
        if count % 64 == 0 and thread_time_ns() > deadline_ns:
            return
        thing = found.thing
        kind = type(thing)
        if _is_plain(thing) or id(thing) in seen:
            continue
        seen.add(id(thing))
        if container_base(kind) is not None or (kind is tuple and thing) or kind in tensors:
            yield found
        elif sizes.counter(kind) is not None or (
            kind is FunctionType and "_torchdynamo_orig_callable" in thing.__dict__
        ):
            yield found
            continue
        if depth < MAX_DEPTH:
            queue.extend((inner, depth + 1) for inner in _opened(found, kind, tensors))


def _is_plain(thing: Any) -> bool:
    """Whether it has nothing inside, and is not text so long that it may be what grows."""
    kind = type(thing)
    return kind in _PLAIN and not (kind in sizes.TEXTS and len(thing) >= sizes.LONG)


def _opened(found: Found, kind: type, tensors: Mapping[type, Tensors]) -> List[Found]:
    try:
        if kind in tensors:
            owner = Owner("", "", None, True)
            parts = tensors[kind].attached(found.thing)
            return [Found("%s.%s" % (found.name, name), name, owner, part) for name, part in parts]
        return [inner for inner in _inside(found, kind) if not _is_plain(inner.thing)]
    except (RuntimeError, IndexError):  # another thread changed it meanwhile; the next scan sees it
        return []


def _inside(found: Found, kind: type) -> Iterator[Found]:
    thing, owner = found.thing, found.owner
    base = container_base(kind)
    if base is not None:
        yield from _entries(found, base)
        yield from _instance(found, kind) if kind is not base else ()
    elif kind is FunctionType:
        yield from _of_function(thing, owner)
    elif kind is MethodType:
        yield found._replace(thing=thing.__self__, keys=())
    elif issubclass(kind, type):
        if is_users_type(thing):
            yield from _attributes(thing, copied(own_dict(thing)))
    elif kind is CellType:
        yield from _of_cell(found)
    elif kind in WAITING:
        yield from _of_waiting(thing, kind)
    elif kind is ContextVar:
        yield from (found._replace(thing=value, keys=()) for value in _values(thing))
    elif kind in _AROUND or named(kind)[0] == "itertools":
        yield from (found._replace(thing=part, keys=()) for part in gc.get_referents(thing) if part is not kind)
    elif issubclass(kind, _thread._local):
        yield from _of_threads(found)
    elif issubclass(kind, tuple) or kind is frozenset:
        for item in list(tuple.__iter__(thing) if kind is not frozenset else thing)[:WIDE]:
            yield found._replace(name=found.name + "[…]", thing=item, keys=(*found.keys, None))
    elif named(kind) == ("_asyncio", "Task"):
        yield found._replace(thing=thing.get_coro(), keys=())
    elif not issubclass(kind, ModuleType):
        yield from _instance(found, kind)


def _values(variable: ContextVar[Any]) -> List[Any]:
    """What it is in each context, as those of other threads and tasks, and where none has set it."""
    from . import collected

    contexts = [context for context in collected.of_types((Context,)) if variable in context]
    values = [context[variable] for context in contexts[:WIDE]]
    values += (default for default in gc.get_referents(variable) if default is not variable.name)
    return list({id(value): value for value in values}.values())


def _entries(found: Found, base: type) -> Iterator[Found]:
    thing, count = found.thing, length(found.thing)
    if base in _DICTS:
        items = dict.items(thing)
        for key, value in list(items) if count <= WIDE else list(islice(reversed(items), FEW)):
            plain = type(key) in (str, int)
            name = "%s[%s]" % (found.name, repr(key)[:40] if plain else "…")
            yield found._replace(name=name, thing=value, kind="", bound=0, keys=(*found.keys, key if plain else None))
        return
    if count > WIDE:
        some = list.__getitem__(thing, slice(-FEW, None)) if base is list else ()
    else:
        some = list(base.__iter__(thing))  # type: ignore[attr-defined]
    for item in some:
        yield found._replace(name=found.name + "[…]", thing=item, kind="", bound=0, keys=(*found.keys, None))


def _of_function(function: Any, owner: Owner) -> Iterator[Found]:
    code = function.__code__
    if not is_users(code, function.__globals__):
        return
    inner = Owner(code.co_filename, code.co_name, (code.co_firstlineno, code.co_name), False)
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        # The variable belongs to the enclosing function, but this one may be what makes it grow.
        yield from _of_cell(Found(name, name, inner, cell))
    defaults = function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    given = [*zip(names[len(names) - len(defaults) :], defaults), *(function.__kwdefaults__ or {}).items()]
    for name, value in given:
        yield Found("%s(%s=…)" % (code.co_name, name), name, inner, value)
    for name, value in copied(function.__dict__):
        if name != "__wrapped__":
            yield Found("%s.%s" % (code.co_name, name), name, Owner(code.co_filename, "", None, True), value)


def _of_cell(found: Found) -> Iterator[Found]:
    try:
        yield found._replace(thing=found.thing.cell_contents)
    except ValueError:  # empty
        return


def _of_waiting(thing: Any, kind: type) -> Iterator[Found]:
    """Variables of a generator or coroutine of the program that has not ended, and of what it waits for."""
    prefix = WAITING[kind]
    frame, inner = getattr(thing, prefix + "_frame"), getattr(thing, _AWAITED[prefix])
    if frame is None:
        return
    code = frame.f_code
    owner = Owner(code.co_filename, code.co_name, (code.co_firstlineno, code.co_name), False)
    if is_users(code, frame.f_globals):
        for name, value in variables(frame).items():
            yield Found(name, name, owner, value)
    if inner is not None:
        yield Found(code.co_name, code.co_name, owner, inner)


_AWAITED = {"gi": "gi_yieldfrom", "cr": "cr_await", "ag": "ag_await"}


def _of_threads(found: Found) -> Iterator[Found]:
    """The attributes that each thread has of a threading.local, none of which is made by looking."""
    for table in gc.get_referents(found.thing):
        for own in list(table.values()) if type(table) is dict else ():
            if type(own) is dict:
                for name, value in copied(own):
                    owner = found.owner._replace(inside=None, attribute=True)
                    yield Found("%s.%s" % (found.name, name), str(name), owner, value)


def _instance(found: Found, kind: type) -> Iterator[Found]:
    """An object's variables: under the object's own name, where one of them stands for it."""
    thing = found.thing
    variables = instance_dict(thing)
    stands = _stands(kind)
    if stands is not None and variables is not None:
        if stands.attribute in variables:
            inner, bound = variables[stands.attribute], variables.get(stands.bound)
            known = bound if type(bound) is int and 0 < bound < LIMITLESS else 0
            yield found._replace(thing=inner, kind=stands.kind or named(kind)[1], keys=(), bound=known)
        if not is_users_type(kind):
            return
    users = is_users_type(kind)
    if variables is not None and (users or len(variables) <= LARGEST):
        items = copied(variables)
        yield from _attributes(kind, items, thing)
        yield from _chained(found, kind, items) if users else ()
        if users and len(items) >= MANY:
            yield found._replace(thing=variables, kind="table of attributes", keys=())
    if users:
        yield from _attributes(kind, in_slots(thing, kind), thing)


def _stands(kind: type) -> Optional[_Stands]:
    for base in bases(kind):
        if named(base) in _STANDS:
            return _STANDS[named(base)]
    return None


def _attributes(kind: type, variables: List[Tuple[Any, Any]], of: Any = None) -> Iterator[Found]:
    module = sys.modules.get(named(kind)[0])
    file = module.__dict__.get("__file__") if type(module) is ModuleType else None
    owner = Owner(file if type(file) is str else "", "", None, True)
    for name, value in variables:
        if type(name) is str and not is_hidden(name):
            written = as_written(name, kind)
            yield Found("%s.%s" % (named(kind)[1], written), written, owner, value, of=of)


def _chained(found: Found, kind: type, variables: List[Tuple[Any, Any]]) -> Iterator[Found]:
    for name, value in variables:
        if type(value) is kind:
            yield found._replace(name="%s.%s" % (found.name, name), thing=sizes.chain(found.thing, name, instance_dict))
