"""What the program's own names reach: containers and tensors, with the name that leads to each.

    frames of the training thread ─┐
    globals of the user's modules ─┴▶ attributes, items, closures, defaults ─▶ Found(name, owner, object)

Nothing here calls the program's code: only exact built-in types are measured and opened, instance dictionaries
are read past properties and __getattr__, and no module is imported. The walk is bounded in time and
depth; what it yields must not be kept beyond the scan.
"""

from __future__ import annotations

import sys
from collections import OrderedDict, defaultdict, deque
from itertools import chain, islice
from time import thread_time_ns
from types import CellType, FrameType, FunctionType, GetSetDescriptorType, MethodType, ModuleType
from typing import Any, Container, Iterable, Iterator, NamedTuple, Optional, Tuple

from . import sizes
from .places import is_library

CONTAINERS = (list, dict, set, deque, OrderedDict, defaultdict)
MAX_DEPTH = 6
WIDE = 64  # items of a longer container are not all opened, only the newest FEW
FEW = 3
_CONTAINERS = frozenset(CONTAINERS)
_PLAIN = frozenset((int, float, str, bytes, bool, type(None), complex, range, slice, bytearray, type(Ellipsis)))


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


# Tables of libraries that no name of the program leads to: module, path in it, what it is called, and its kind.
_TABLES = (
    ("matplotlib._pylab_helpers", ("Gcf", "figs"), "pyplot", "open figures"),
    ("logging", ("Logger", "manager", "loggerDict"), "loggers", ""),
    ("logging", ("root", "handlers"), "root.handlers", ""),
)


def walk(frames: Iterable[FrameType], tensor_types: Container[type], deadline_ns: int) -> Iterator[Found]:
    """Yield all within reach that can be counted, nearest first, until the deadline in processor time.

    Args:
        frames: innermost frames of threads.
    """
    queue: deque[Tuple[Found, int]] = deque()
    seen: set[int] = set()
    for found in chain(*map(_of_stack, frames), _globals(), _tables()):
        queue.append((found, 0))
    count = 0
    while queue:
        found, depth = queue.popleft()
        count += 1
        if count % 64 == 0 and thread_time_ns() > deadline_ns:
            return
        thing = found.thing
        kind = type(thing)
        if kind in _PLAIN or id(thing) in seen:
            continue
        seen.add(id(thing))
        if kind in _CONTAINERS or kind in tensor_types:
            yield found
        elif sizes.counter(kind) is not None or (
            kind is FunctionType and "_torchdynamo_orig_callable" in thing.__dict__
        ):
            yield found
            continue
        if depth < MAX_DEPTH and kind not in tensor_types:
            for inner in _inside(found, kind):
                if type(inner.thing) not in _PLAIN:
                    queue.append((inner, depth + 1))


def _tables() -> Iterator[Found]:
    for module, path, name, kind in _TABLES:
        thing: Any = sys.modules.get(module)
        for step in path:
            thing = getattr(thing, step, None)
        if thing is not None:
            yield Found(name, path[-1], Owner("", "", None, True), thing, kind)


def _of_stack(innermost: FrameType) -> Iterator[Found]:
    frame: Optional[FrameType] = innermost
    while frame is not None:
        code = frame.f_code
        if code.co_flags & 1:  # CO_OPTIMIZED: a function's, not a module's
            owner = Owner(code.co_filename, code.co_name, (code.co_firstlineno, code.co_name), False)
            library = is_library(code.co_filename)
            for name, value in local_variables(frame):
                if not library or _is_users(type(value)):
                    yield Found(name, name, owner, value)
        frame = frame.f_back


_libraries: set[str] = set()  # names of modules that are not the user's; of some frameworks there are thousands


def _globals() -> Iterator[Found]:
    for module_name, module in list(sys.modules.items()):
        if module_name in _libraries or type(module) is not ModuleType:
            continue
        file = module.__dict__.get("__file__")
        if type(file) is str and is_library(file):
            _libraries.add(module_name)
        elif type(file) is str and module_name != "sitecustomize":
            owner = Owner(file, "", None, False)
            for name, value in list(module.__dict__.items()):
                if not name.startswith("__") and type(value) is not ModuleType:
                    yield Found(name, name, owner, value)


def local_variables(frame: FrameType) -> list[Tuple[str, Any]]:
    """A function's variables. Before 3.13 reading them leaves a copy on the frame, which would keep tensors
    alive: it is emptied again, unless somebody else (locals(), a debugger) holds it, too."""
    variables = frame.f_locals
    items = list(variables.items())
    if sys.version_info < (3, 13) and sys.getrefcount(variables) <= 3:
        variables.clear()
    return items


def _inside(found: Found, kind: type) -> Iterator[Found]:
    thing, owner = found.thing, found.owner
    if kind in (list, tuple, deque, set, frozenset):
        some = (thing[-FEW:] if kind in (list, tuple) else ()) if len(thing) > WIDE else list(thing)
        for item in some:
            yield Found(found.name + "[…]", found.leaf, owner, item)
    elif kind in (dict, OrderedDict, defaultdict):
        for key, value in _items(thing):
            label = repr(key) if type(key) in (str, int) else "…"
            yield Found("%s[%s]" % (found.name, label[:40]), found.leaf, owner, value)
    elif kind is FunctionType:
        yield from _of_function(thing, owner)
    elif kind is MethodType:
        yield Found(found.name, found.leaf, owner, thing.__self__)
    elif kind is type or issubclass(kind, type):
        if _is_users(thing):
            yield from _attributes(thing, dict(type.__dict__["__dict__"].__get__(thing)))
    elif kind is CellType:
        yield from _of_cell(found)
    elif kind is not ModuleType:
        variables = instance_dict(thing)
        if variables is not None and (_is_users(kind) or len(variables) <= 256):
            yield from _attributes(kind, variables)
            yield from _chained(found, kind, variables)


def _items(thing: dict[Any, Any]) -> list[Tuple[Any, Any]]:
    if len(thing) <= WIDE:
        return list(thing.items())
    return list(islice(reversed(thing.items()), FEW))  # the newest


def _of_function(function: Any, owner: Owner) -> Iterator[Found]:
    code = function.__code__
    if is_library(code.co_filename):
        return
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        # The variable belongs to the enclosing function, but this one may be what makes it grow.
        inner = Owner(code.co_filename, code.co_name, (code.co_firstlineno, code.co_name), False)
        yield from _of_cell(Found(name, name, inner, cell))
    defaults = function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    inner = Owner(code.co_filename, code.co_name, (code.co_firstlineno, code.co_name), False)
    for name, value in zip(names[len(names) - len(defaults) :], defaults):
        yield Found("%s(%s=…)" % (code.co_name, name), name, inner, value)
    for name, value in list(function.__dict__.items()):
        if name != "__wrapped__":
            yield Found("%s.%s" % (code.co_name, name), name, Owner(code.co_filename, "", None, True), value)


def _of_cell(found: Found) -> Iterator[Found]:
    try:
        yield found._replace(thing=found.thing.cell_contents)
    except ValueError:  # empty
        return


def _attributes(kind: type, variables: dict[Any, Any]) -> Iterator[Found]:
    module = sys.modules.get(kind.__module__)
    file = module.__dict__.get("__file__") if type(module) is ModuleType else None
    owner = Owner(file if type(file) is str else "", "", None, True)
    for name, value in list(variables.items()):
        if type(name) is str and not name.startswith("__"):
            yield Found("%s.%s" % (kind.__name__, name), name, owner, value)


def _chained(found: Found, kind: type, variables: dict[Any, Any]) -> Iterator[Found]:
    for name, value in list(variables.items()):
        if type(value) is kind and _is_users(kind):
            yield found._replace(name="%s.%s" % (found.name, name), thing=sizes.chain(found.thing, name, instance_dict))


def instance_dict(thing: Any) -> Optional[dict[Any, Any]]:
    """An object's own variables, read without running a property or __getattr__ of its class."""
    for base in type.__dict__["__mro__"].__get__(type(thing)):
        descriptor = type.__dict__["__dict__"].__get__(base).get("__dict__")
        if type(descriptor) is GetSetDescriptorType:
            variables = descriptor.__get__(thing)
            return variables if type(variables) is dict else None
        if descriptor is not None:
            return None
    return None


def _is_users(kind: type) -> bool:
    module = sys.modules.get(type.__dict__["__module__"].__get__(kind) or "")
    if type(module) is not ModuleType:
        return False
    file = module.__dict__.get("__file__")
    return type(file) is str and not is_library(file)
