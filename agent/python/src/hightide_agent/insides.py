"""What objects have inside, read past the program's code: no property, __getattr__ or __iter__ of it is run.

Whoever yields what is read here must not keep it beyond the scan.
"""

from __future__ import annotations

import sys
from collections import OrderedDict, defaultdict, deque
from types import GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any, Dict, List, Optional, Tuple

from .places import is_library, without_file

_BASES = (deque, defaultdict, OrderedDict, dict, list, set)
_bases: Dict[type, Optional[type]] = {}


def container_base(kind: type) -> Optional[type]:
    """The built-in container that a type is, or is made from; its methods are safe to call. None: it is none."""
    try:
        return _bases[kind]
    except KeyError:
        mro = bases(kind)
        _bases[kind] = found = next((base for base in _BASES if base in mro), None)
        return found


def bases(kind: type) -> Tuple[type, ...]:
    """A class and what it is made from, past its metaclass.

    None of a type in C that is not made ready, as that of what code.co_positions() gives before Python 3.12.
    """
    return type.__dict__["__mro__"].__get__(kind) or ()


def own_dict(kind: type) -> Dict[str, Any]:
    """A class's own attributes, past its metaclass."""
    found: Dict[str, Any] = type.__dict__["__dict__"].__get__(kind)
    return found


def length(thing: Any) -> int:
    """Entries of a container, whatever its own class says."""
    base: Any = container_base(type(thing))
    return int(base.__len__(thing))


def newest(thing: Any, most: int) -> List[Any]:
    """Up to so many values of a container: those added last, newest first, of a set any. May raise RuntimeError."""
    base: Any = container_base(type(thing))
    if base in (list, deque):
        count = base.__len__(thing)
        return [base.__getitem__(thing, count - 1 - i) for i in range(min(most, count))]
    values = iter(set.__iter__(thing)) if base is set else reversed(dict.values(thing))
    return [value for value, _ in zip(values, range(most))]


def newest_keys(thing: Any, most: int) -> List[Any]:
    """The keys of what newest gives of a dict; none of another container. May raise RuntimeError."""
    base = container_base(type(thing))
    if base is None or not issubclass(base, dict):
        return []
    return [key for key, _ in zip(reversed(dict.keys(thing)), range(most))]


def slot(thing: Any) -> float:
    """Bytes that a container takes for an entry, beside what is in it; 0 of what is none."""
    base: Any = container_base(type(thing))
    return 0.0 if base is None else base.__sizeof__(thing) / max(base.__len__(thing), 1)


def copied(thing: Any) -> List[Tuple[Any, Any]]:
    """A dict's items; none where other threads change it all the time."""
    for _ in range(3):
        try:
            return list(thing.items())
        except RuntimeError:  # it changed meanwhile
            continue
    return []


def instance_variables(thing: Any) -> List[Tuple[str, Any]]:
    """An object's own variables, in slots too; not of a class or module."""
    kind = type(thing)
    if issubclass(kind, (type, ModuleType)):
        return []
    found = [(name, value) for name, value in copied(instance_dict(thing) or {}) if type(name) is str]
    return found + in_slots(thing, kind)


_slots: Dict[type, List[Tuple[str, Any]]] = {}  # of classes of the program


def in_slots(thing: Any, kind: type) -> List[Tuple[str, Any]]:
    """What an object of the program's own classes has in slots."""
    members = _slots.get(kind)
    if members is None:
        mro = [base for base in bases(kind) if is_users_type(base)]
        classes = [own_dict(base) for base in mro]
        members = _slots[kind] = [
            (name, member) for own in classes for name, member in copied(own) if type(member) is MemberDescriptorType
        ]
    found = []
    for name, member in members:
        try:
            found.append((name, member.__get__(thing)))
        except AttributeError:  # not set
            continue
    return found


def instance_dict(thing: Any) -> Optional[Dict[Any, Any]]:
    """An object's __dict__, as far as it has one of its own."""
    for base in bases(type(thing)):
        descriptor = own_dict(base).get("__dict__")
        if type(descriptor) is GetSetDescriptorType:
            variables = descriptor.__get__(thing)
            return variables if type(variables) is dict else None
        if descriptor is not None:
            return None
    return None


_users: Dict[str, bool] = {}  # by the name of a module, once it is imported


def is_users_type(kind: type) -> bool:
    """Whether a class is the program's own."""
    name = named(kind)[0]
    known = _users.get(name)
    if known is None:
        module = sys.modules.get(name)
        if type(module) is not ModuleType:
            return False
        file = module.__dict__.get("__file__")
        known = _users[name] = not is_library(file) if type(file) is str else without_file(module.__dict__)
    return known


def named(kind: type) -> Tuple[str, str]:
    """Module and name of a class, past its metaclass; "" where they are no text."""
    module = type.__dict__["__module__"].__get__(kind)
    return module if type(module) is str else "", type.__dict__["__name__"].__get__(kind)


def forget() -> None:
    """After a scan: a table by class would keep the program's classes alive."""
    _bases.clear()
    _slots.clear()


def is_hidden(name: str) -> bool:
    """Whether a name is the interpreter's own, as __dict__ is."""
    return name.startswith("__") and name.endswith("__")


def as_written(name: str, kind: type) -> str:
    """An attribute's name as the source has it: __log in a class C is kept as _C__log."""
    if name.startswith("_") and "__" in name[1:]:
        for base in bases(kind):
            prefix = "_" + named(base)[1].lstrip("_") + "__"
            if name.startswith(prefix) and not name.endswith("__"):
                return name[len(prefix) - 2 :]
    return name


def keeps_frames(item: Any) -> bool:
    """Whether it is an exception with its traceback, which keeps the variables of functions, or a tuple of one and of
    what takes little.
    """
    if type(item) is tuple:
        return any(map(_keeps_frames, item)) and all(_keeps_frames(part) or type(part) in _SMALL for part in item)
    return _keeps_frames(item)


def _keeps_frames(thing: Any) -> bool:
    return BaseException in bases(type(thing)) and _traceback(thing) is not None


_traceback = BaseException.__dict__["__traceback__"].__get__  # past a class's own
_SMALL = (int, float, bool, type(None), type)
