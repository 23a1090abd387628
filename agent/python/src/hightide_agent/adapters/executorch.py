"""ExecuTorch: each call of a method is a step, and all of it is the forward pass.

The runtime does not tell Python what it holds. What its planner set aside for the values of a method stands in the
program: that much it allocates when the method is loaded, and no more for them.
"""

from __future__ import annotations

import functools
import mmap
import os
import struct
from typing import Any, Callable, Iterator

from ..inference import Sessions
from ..training import Training

Watch = Callable[[str, Callable[[Any], None]], None]
LOADERS = (
    "_load_program",
    "_load_program_from_buffer",
    "_load_for_executorch",
    "_load_for_executorch_from_buffer",
)
PLANS, SIZES = 1, 8  # fields of Program and of ExecutionPlan, by ExecuTorch's program.fbs


def install(training: Training, bindings: Any, watch: Watch) -> None:
    """Observe this process's use of ExecuTorch, whose bindings have just been imported, before other modules take their
    functions over under names of their own."""
    from importlib import metadata  # the package has no __init__ that would say its version

    def threads() -> None:  # asked for earlier, the runtime would start them for that
        training.agent.fact("executorch_threads", bindings._threadpool_get_thread_count())

    sessions = Sessions(training, "executorch")
    method, module = bindings.ExecuTorchMethod, bindings.ExecuTorchModule
    training.agent.framework("executorch", metadata.version("executorch"))
    training.install_parts(
        "ExecuTorch",
        ("threads", lambda: sessions.at_first.append(threads)),
        ("calls of methods", lambda: sessions.calls(method, ("__call__", "call", "execute"))),
        ("calls of modules", lambda: sessions.calls(module, ("__call__", "forward", "run_method", "plan_execute"))),
        ("programs", lambda: _watch_loaders(sessions, bindings)),
    )


def _watch_loaders(sessions: Sessions, bindings: Any) -> None:
    for name in LOADERS:
        if hasattr(bindings, name):
            setattr(bindings, name, _looked_at(sessions, getattr(bindings, name)))


def _looked_at(sessions: Sessions, load: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(load)
    def loaded(program: Any, *args: Any, **kwargs: Any) -> Any:
        result = load(program, *args, **kwargs)
        sessions.loaded(lambda: program, lambda: {"planned": planned(program)})
        return result

    return loaded


def planned(program: Any) -> int:
    """Bytes that the planner set aside for values, of the methods of a program the most.

    Args:
        program: its bytes, or the path of a file.
    """
    if isinstance(program, bytes):
        return max(_sizes(program), default=0)
    with open(os.fspath(program), "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return max(_sizes(data), default=0)


def _sizes(data: Any) -> Iterator[int]:
    """Of each method what is set aside for it. The first size of each is by convention that of constants."""
    (program,) = struct.unpack_from("<I", data, 0)
    for plan in _vector(data, _field(data, program, PLANS), "I"):
        yield sum(size for _, size in list(_vector(data, _field(data, plan[0] + plan[1], SIZES), "q"))[1:])


def _field(data: Any, table: int, number: int) -> int:
    """Where a table of a flatbuffer has a field; 0: it has none."""
    layout = table - struct.unpack_from("<i", data, table)[0]
    (length,) = struct.unpack_from("<H", data, layout)
    entry = 4 + 2 * number
    (offset,) = struct.unpack_from("<H", data, layout + entry) if entry < length else (0,)
    return table + offset if offset else 0


def _vector(data: Any, field: int, kind: str) -> Iterator[tuple[int, int]]:
    """The items of a vector that a field refers to, each with its place."""
    if not field:
        return
    at = field + struct.unpack_from("<I", data, field)[0]
    size = struct.calcsize("<" + kind)
    for place in range(at + 4, at + 4 + size * struct.unpack_from("<I", data, at)[0], size):
        yield place, struct.unpack_from("<" + kind, data, place)[0]
