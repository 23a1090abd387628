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
from types import (
    CellType,
    FrameType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)  # fmt: skip
from typing import TYPE_CHECKING, Any, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from . import sizes
from .frames import OPTIMIZED, variables
from .places import is_library, is_users, without_file

if TYPE_CHECKING:
    from .holders import Tensors

CONTAINERS = (list, dict, set, deque, OrderedDict, defaultdict)
MAX_DEPTH = 6
WIDE = 64  # items of a longer container are not all opened, only the newest FEW
FEW = 3
WITHIN = 2  # levels into what a library's variables lead to, where objects of the program are looked for
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


def walk(frames: Iterable[FrameType], tensors: Mapping[type, Tensors], deadline_ns: int) -> Iterator[Found]:
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
        if kind in _CONTAINERS or kind in tensors:
            yield found
        elif sizes.counter(kind) is not None or (
            kind is FunctionType and "_torchdynamo_orig_callable" in thing.__dict__
        ):
            yield found
            continue
        if depth < MAX_DEPTH:
            queue.extend((inner, depth + 1) for inner in _opened(found, kind, tensors))


def _opened(found: Found, kind: type, tensors: Mapping[type, Tensors]) -> List[Found]:
    try:
        if kind in tensors:
            owner = Owner("", "", None, True)
            parts = tensors[kind].attached(found.thing)
            return [Found("%s.%s" % (found.name, name), name, owner, part) for name, part in parts]
        return [inner for inner in _inside(found, kind) if type(inner.thing) not in _PLAIN]
    except RuntimeError:  # another thread changed it meanwhile; the next scan sees it
        return []


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
        if code.co_flags & OPTIMIZED:
            owner = Owner(code.co_filename, code.co_name, (code.co_firstlineno, code.co_name), False)
            library = not is_users(code, frame.f_globals)
            for name, value in variables(frame).items():
                if library:
                    yield from _users_within(Found(name, name, owner, value), WITHIN)
                else:
                    yield Found(name, name, owner, value)
        frame = frame.f_back


def _users_within(found: Found, levels: int) -> Iterator[Found]:
    """Objects of the program that a library's variable leads to, such as the callbacks that it was handed."""
    thing, kind = found.thing, type(found.thing)
    if kind in _PLAIN:
        return
    if _is_users(kind):
        yield found
    elif levels and kind in (list, tuple) and len(thing) <= WIDE:
        for item in list(thing):
            yield from _users_within(found._replace(name=found.name + "[…]", thing=item), levels - 1)
    elif levels and kind not in _CONTAINERS and not issubclass(kind, (type, ModuleType)):
        variables = instance_dict(thing) or {}
        for name, value in copied(variables) if len(variables) <= WIDE else ():
            yield from _users_within(found._replace(name=str(name), leaf=str(name), thing=value), levels - 1)


_libraries: set[str] = set()  # names of modules that are not the user's; of some frameworks there are thousands


def _globals() -> Iterator[Found]:
    for module_name, module in copied(sys.modules):
        if module_name in _libraries or type(module) is not ModuleType:
            continue
        file = module.__dict__.get("__file__")
        if file is None and module_name == "__main__":
            file = ""  # of python -c, standard input or a notebook
        elif type(file) is str and is_library(file):
            _libraries.add(module_name)
        if type(file) is str and not is_library(file) and module_name != "sitecustomize":
            owner = Owner(file, "", None, False)
            for name, value in copied(module.__dict__):
                if not name.startswith("__") and type(value) is not ModuleType:
                    yield Found(name, name, owner, value)


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


def copied(thing: dict[Any, Any]) -> list[Tuple[Any, Any]]:
    """A dict's items; none where other threads change it all the time."""
    for _ in range(3):
        try:
            return list(thing.items())
        except RuntimeError:  # it changed meanwhile
            continue
    return []


def _items(thing: dict[Any, Any]) -> list[Tuple[Any, Any]]:
    if len(thing) <= WIDE:
        return list(thing.items())
    return list(islice(reversed(thing.items()), FEW))  # the newest


def _of_function(function: Any, owner: Owner) -> Iterator[Found]:
    code = function.__code__
    if not is_users(code, function.__globals__):
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


def instance_variables(thing: Any) -> list[Tuple[str, Any]]:
    """An object's own variables, in slots too, read past properties and __getattr__; not of a class or module."""
    if issubclass(type(thing), (type, ModuleType, FunctionType)):
        return []
    found = [(name, value) for name, value in copied(instance_dict(thing) or {}) if type(name) is str]
    for base in type.__dict__["__mro__"].__get__(type(thing)):
        for name, member in copied(type.__dict__["__dict__"].__get__(base)) if _is_users(base) else ():
            if type(member) is MemberDescriptorType:
                try:
                    found.append((name, member.__get__(thing)))
                except AttributeError:  # not set
                    continue
    return found


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


_users: dict[Any, bool] = {}  # by the name of a module, once it is imported


def _is_users(kind: type) -> bool:
    name = type.__dict__["__module__"].__get__(kind)
    if type(name) is not str:
        return False
    known = _users.get(name)
    if known is None:
        module = sys.modules.get(name)
        if type(module) is not ModuleType:
            return False
        file = module.__dict__.get("__file__")
        known = _users[name] = not is_library(file) if type(file) is str else without_file(module.__dict__)
    return known
