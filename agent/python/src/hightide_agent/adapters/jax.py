"""JAX: functions that are compiled again, what programs need and devices hold, and errors that say that one is full.

    jax.monitoring: a function was traced for jit ─▶ traces.py          a program was compiled ─▶ xla/programs.py
    --snapshot-on, hightide.snapshot(), out of memory ─▶ xla/profiles.py
    Device.memory_stats, once the program has started a device ─▶ counters

A jitted call that is in the cache runs no Python. Steps are seen where its result replaces what it was given
(xla/loops.py); Keras's fit tells its own, others say hightide.step(). Lines and growth over time need no steps.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

from .. import oom
from ..allocators import ALLOCATED, RESERVED
from ..frames import variables
from ..places import caller, text_of
from ..traces import Traces
from ..training import Training
from ..xla.loops import Loops
from ..xla.profiles import Profiles
from ..xla.programs import Programs
from ..xla.wrapped import OWN, place

Watch = Callable[[str, Callable[[Any], None]], None]

TRACED = "/jax/core/compile/jaxpr_trace_duration"
COMPILED = "/jax/core/compile/backend_compile_duration"
_UNITS = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def install(training: Training, jax: Any, watch: Watch) -> None:
    """Observe this process's use of the JAX that has just been imported."""
    training.out_of_memory(_out_of_memory)
    traces = Traces(training.agent, "jax"), Traces(training.agent, "jax")
    devices, profiles = Devices(training), Profiles(training)
    imagined = os.environ.get("HIGHTIDE_IMAGINE") == "1"  # steps are told by calls, then
    loops = None if imagined else Loops(training)

    def listen(event: str, duration: float, **facts: Any) -> None:
        try:
            if event == TRACED:
                _traced(traces, sys._getframe(1))
            elif event == COMPILED:
                devices.started()
                profiles.started()
        except Exception as error:
            training.agent.log("could not see what JAX compiles", error)

    training.install_parts(
        "JAX",
        ("compilations", lambda: jax.monitoring.register_event_duration_secs_listener(listen)),
        ("programs", lambda: watch("jax._src.interpreters.pxla", Programs(training.agent, loops).install)),
        ("memory profiles", profiles.install),
        ("ranks", lambda: watch("jax._src.distributed", lambda module: _ranks(training, module))),
    )
    if imagined:
        from ..imagine import xla

        xla.install(training, jax, watch)
    if os.environ.get("HIGHTIDE_PLAN"):
        from ..levers import of_jax

        training.install_parts("JAX", ("levers", lambda: of_jax.install(training.agent, jax, watch)))


def _ranks(training: Training, module: Any) -> None:
    """Tell which of several processes this is, once jax.distributed knows."""
    original = module.State.initialize

    @functools.wraps(original)
    def initialize(state: Any, /, *args: Any, **kwargs: Any) -> Any:
        result = original(state, *args, **kwargs)
        training.agent.set_rank(int(state.process_id), int(state.num_processes))
        return result

    module.State.initialize = initialize


def _traced(traces: Tuple[Traces, Traces], frame: Any) -> None:
    """Look up the function that was traced, and for what, among the variables of who tells of it. `traces`: of jitted
    functions; of operations of JAX's own outside of any, by the lines that run them."""
    for _ in range(6):
        if frame is None:
            return
        held = variables(frame)
        debug, types = held.get("dbg"), getattr(held.get("in_type"), "vals", None)
        if debug is not None and types is not None:
            break
        frame = frame.f_back
    else:
        return
    (name, file, line), _ = place(str(debug.func_src_info), frame)
    if not file:
        return
    eager = OWN in file
    if eager:
        file, line, _ = caller(frame)
    names = list(debug.arg_names or ())
    arguments: Dict[str, str] = {}
    for i, kind in enumerate(types):
        arguments[str(names[i]) if i < len(names) else "argument %d" % i] = _type(kind)
    traces[eager].traced((name, file, line), name, file, line, arguments, **({"eager": "yes"} if eager else {}))


def _type(kind: Any) -> str:
    """The type of an array, without where it lies: float32[8,16]."""
    kind = getattr(kind, "aval", kind)
    return str(kind.str_short()) if hasattr(kind, "str_short") else str(kind)


class Devices:
    """The accelerators that the program has started. JAX's allocator takes most of a device at the start: that is
    reserved, and what arrays hold of it is allocated."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self._looked = False
        training.agent.on_renew.append(self._forget)

    def _forget(self) -> None:
        self._looked = False

    def started(self) -> None:
        """Something was compiled for a device, so it runs."""
        if self._looked:
            return
        self._looked = True
        devices = [d for d in sys.modules["jax"].local_devices() if d.platform != "cpu" and d.memory_stats()]
        if devices:
            self.training.allocator("jax", lambda: _readings(devices))


def _readings(devices: Any) -> Iterator[Tuple[str, str, int]]:
    for device in devices:
        stats = device.memory_stats() or {}
        imagined = device.platform == "gpu" and os.environ.get("HIGHTIDE_IMAGINE") == "1"
        name = "%s:%d" % ("cuda" if imagined else device.platform, device.id)  # as what imagines the device calls it
        for quantity, key in ((ALLOCATED, "bytes_in_use"), (RESERVED, "pool_bytes")):
            if stats.get(key, -1) >= 0:  # some devices say -1 of what they do not know
                yield name, quantity, int(stats[key])


def _out_of_memory(error: BaseException) -> Optional[oom.Shortage]:
    """XLA says RESOURCE_EXHAUSTED, and mostly how much it wanted."""
    if type(error).__name__ not in ("XlaRuntimeError", "JaxRuntimeError"):
        return None
    text = text_of(error)
    if not text.startswith("RESOURCE_EXHAUSTED"):
        return None
    platform = sys.modules["jax"].default_backend()
    return "jax", platform if platform == "cpu" else "%s:0" % platform, _asked(text)


def _asked(text: str) -> Optional[int]:
    """Bytes, exact or as "11.18GiB"."""
    exact = re.search(r"allocat\w* (\d+) bytes", text)
    if exact is not None:
        return int(exact.group(1))
    rounded = re.search(r"allocat\w* ([\d.]+) ?([KMG]i?)B?\b", text)
    return None if rounded is None else int(float(rounded.group(1)) * _UNITS[rounded.group(2)])
