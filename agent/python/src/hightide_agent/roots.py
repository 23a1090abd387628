"""Where names begin: variables of functions that run or wait, globals of the program's modules, tables of libraries."""

from __future__ import annotations

import sys
from types import FrameType, ModuleType
from typing import Any, Iterable, Iterator, List, Optional, Set, Tuple

from .frames import OPTIMIZED, variables
from .insides import container_base, copied, instance_dict, is_hidden, is_users_type
from .places import is_library, is_users
from .reach import MANY, WIDE, Found, Owner

WITHIN = 2  # levels into what a library's variables lead to, where objects of the program are looked for
MOST_TASKS = 256

# Tables of libraries that no name of the program leads to: module, path in it, what it is called, and its kind.
_TABLES = (
    ("matplotlib._pylab_helpers", ("Gcf", "figs"), "pyplot", "list of open figures"),
    ("logging", ("Logger", "manager", "loggerDict"), "logging.root.manager.loggerDict", "table of loggers"),
    ("logging", ("root", "handlers"), "root.handlers", ""),
    ("linecache", ("cache",), "linecache.cache", "table of source lines"),
)


def roots(frames: Iterable[FrameType], more: Iterable[Found] = ()) -> Iterator[Found]:
    """All of them, nearest first.

    Args:
        frames: innermost frames of threads.
        more: what else is known to hold something.
    """
    for frame in frames:
        yield from _of_stack(frame)
    yield from _globals()
    yield from _tasks()
    yield from _tables()
    yield from more


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
    if is_users_type(kind):
        yield found
    elif levels and kind in (list, tuple) and len(thing) <= WIDE:
        for item in list(thing):
            yield from _users_within(found._replace(name=found.name + "[…]", thing=item), levels - 1)
    elif levels and container_base(kind) is None and not issubclass(kind, (type, ModuleType)):
        variables = instance_dict(thing) or {}
        for name, value in copied(variables) if len(variables) <= WIDE else ():
            yield from _users_within(found._replace(name=str(name), leaf=str(name), thing=value), levels - 1)


_libraries: Set[str] = set()  # names of modules that are not the user's; of some frameworks there are thousands


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
                if not is_hidden(name) and type(value) is not ModuleType:
                    yield Found(name, name, owner, value)
                elif name == "__warningregistry__":
                    yield Found(name, name, owner, value, "registry of warnings")
            if len(module.__dict__) >= MANY:
                yield Found(module_name, module_name, owner, module.__dict__, "table of variables")


def _tasks() -> Iterator[Found]:
    """Coroutines of asyncio's tasks, which wait with their variables."""
    for task in _all_tasks()[:MOST_TASKS]:
        coroutine: Any = task.get_coro()
        name = getattr(coroutine, "__name__", "task")
        yield Found(name, name, Owner("", "", None, False), coroutine)


def _all_tasks() -> List[Any]:
    module: Any = sys.modules.get("asyncio.tasks")
    names: Tuple[str, ...] = ("_all_tasks", "_scheduled_tasks")  # before Python 3.12, and since
    tables = [getattr(module, name, None) for name in names]
    found: List[Any] = []
    for table in tables:
        for reference in list(getattr(table, "data", ())):
            task = reference()
            if task is not None and not task.done():
                found.append(task)
    return found
