"""Functions and blocks that are profiled: spans of the recording, with what was held at both ends read in place.

profile_function, profile_context ─▶ span ─▶ the engine's recording ─▶ get_summary
                                  └▶ Reading at both ends ─▶ Profile ─▶ results
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from time import monotonic_ns, time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Union

from .. import _engine, _session
from .._spans import function_name
from ._readings import Reading, peak, read
from ._system import MIB, number_of
from ._tensors import TensorTracker

MOST_RESULTS = 10_000  # of one profiler; what is beyond is in the sums and in the recording


class Snapshot(NamedTuple):
    """What was held at a moment, by the old names. Bytes; of the device 0 where this process uses none."""

    timestamp: float
    """seconds since 1970"""
    operation: str
    reading: Reading
    device_id: int = 0

    @property
    def allocated_memory(self) -> int:
        """Allocated on the device."""
        return self.reading.allocated

    @property
    def reserved_memory(self) -> int:
        """Held from the device by the allocator."""
        return self.reading.reserved

    @property
    def active_memory(self) -> int:
        """In blocks in use."""
        return self.reading.active

    @property
    def inactive_memory(self) -> int:
        """Free in blocks that are partly in use."""
        return self.reading.inactive

    @property
    def max_memory_allocated(self) -> int:
        """The most that was ever allocated."""
        return self.reading.allocated_mark

    @property
    def max_memory_reserved(self) -> int:
        """The most that was ever reserved."""
        return self.reading.reserved_mark

    @property
    def cpu_memory(self) -> int:
        """Resident on the host."""
        return self.reading.rss

    @property
    def gpu_memory_mb(self) -> float:
        """Allocated on the device, in MiB."""
        return self.reading.allocated / MIB

    @property
    def cpu_memory_mb(self) -> float:
        """Resident on the host, in MiB."""
        return self.reading.rss / MIB


class Profile:
    """One call of a function, or one stay in a block."""

    __slots__ = ("after", "before", "device", "error", "function_name", "value")

    def __init__(self, name: str, before: Reading, device: Optional[int] = None) -> None:
        self.function_name = name
        self.before = self.after = before
        self.device = device
        self.value: Any = None
        """what the function returned"""
        self.error = ""
        """what it raised"""

    @property
    def execution_time(self) -> float:
        """Seconds."""
        return (self.after.at_ns - self.before.at_ns) / 1e9

    @property
    def peak_memory(self) -> int:
        """The most bytes held, as far as both ends tell: of the device where one is used, else of the host."""
        return peak(self.before, self.after)

    @property
    def memory_change(self) -> int:
        """Bytes more than before."""
        return self.after.held - self.before.held

    @property
    def memory_allocated(self) -> int:
        """Bytes that it left behind; 0: none."""
        return max(self.memory_change, 0)

    @property
    def memory_freed(self) -> int:
        """Bytes that it freed beyond what it allocated."""
        return max(-self.memory_change, 0)

    @property
    def memory_before(self) -> Snapshot:
        """At its beginning."""
        return self._snapshot(self.before)

    @property
    def memory_after(self) -> Snapshot:
        """At its end."""
        return self._snapshot(self.after)

    @property
    def memory_peak(self) -> Snapshot:
        """At its end, with the most that was held in place of what was held then."""
        most = {"allocated" if self.after.on_device else "rss": self.peak_memory}
        return self._snapshot(self.after._replace(**most))

    @property
    def call_count(self) -> int:
        """One: sums are in get_summary()."""
        return 1

    def _snapshot(self, reading: Reading) -> Snapshot:
        at = time() - (monotonic_ns() - reading.at_ns) / 1e9
        return Snapshot(at, self.function_name, reading, self.device or 0)

    def to_dict(self) -> Dict[str, Any]:
        """Its figures by name."""
        return {
            "function_name": self.function_name, "execution_time": self.execution_time, "peak_memory": self.peak_memory,
            "memory_allocated": self.memory_allocated, "memory_freed": self.memory_freed,
            "memory_before": self.before._asdict(), "memory_after": self.after._asdict(),
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"Profile({self.function_name!r}, {self.execution_time:.3g} s, peak {self.peak_memory / MIB:.1f} MiB)"


class Calls:
    """Sums over all calls of a name. Where nothing is recorded, decorated functions are only counted and timed."""

    def __init__(self) -> None:
        self.read = 0  # of how many memory was read
        self.count = self.time_ns = self.longest_ns = self.peak = self.rise = self.allocated = self.freed = 0

    @property
    def change(self) -> int:
        """Bytes that all of them left behind together; negative: freed."""
        return self.allocated - self.freed

    def add(self, profile: Profile) -> None:
        """Take in one more."""
        self.took(profile.after.at_ns - profile.before.at_ns)
        self.read += 1
        most = profile.peak_memory
        self.peak = max(self.peak, most)
        self.rise = max(self.rise, most - profile.before.held)
        self.allocated += profile.memory_allocated
        self.freed += profile.memory_freed

    def took(self, time_ns: int) -> None:
        """Count one more."""
        self.count += 1
        self.time_ns += time_ns
        self.longest_ns = max(self.longest_ns, time_ns)

    def to_dict(self) -> Dict[str, Any]:
        """By the old names; bytes and seconds. Memory that was never read is None."""
        memory = {
            "peak_memory": self.peak, "memory_rise": self.rise, "net_memory_change": self.change,
            "total_memory_allocated": self.allocated, "total_memory_freed": self.freed,
        }  # fmt: skip
        return {
            "call_count": self.count, "total_time": self.time_ns / 1e9,
            "avg_time": self.time_ns / max(self.count, 1) / 1e9, "max_time": self.longest_ns / 1e9,
            **(memory if self.read else dict.fromkeys(memory)),
        }  # fmt: skip


class Stay:
    """A block that is profiled: `with profiler.profile_context("forward") as profile`."""

    __slots__ = ("_name", "_profiler", "_span", "profile")

    def __init__(self, profiler: Profiler, name: str) -> None:
        self._profiler, self._name = profiler, name

    def __enter__(self) -> Profile:
        recorder = _session.recorder if _session.known else _session.look()
        self._span = (recorder, None if recorder is None else recorder.enter(self._name))
        self.profile = Profile(self._name, read(self._profiler.number), self._profiler.number)
        return self.profile

    def __exit__(self, _: object, error: Optional[BaseException], __: object) -> None:
        profile = self.profile
        profile.after = read(self._profiler.number)
        recorder, stay = self._span
        if stay is not None:
            recorder.leave(stay)
        profile.error = "" if error is None else f"{type(error).__name__}: {error}"
        self._profiler.add(profile)


class Profiler:
    """What the profilers of both frameworks have in common. Making one starts the engine, where nothing records yet."""

    def __init__(self, device: Any = None, name: str = "") -> None:
        self.number = number_of(device)
        self.results: List[Profile] = []
        self.snapshots: List[Snapshot] = []
        self.calls: Dict[str, Calls] = {}
        self._tensors: Optional[TensorTracker] = None
        begin(name)
        self.baseline = read(self.number)

    def profile_context(self, name: str = "context") -> Stay:
        """A block of the program, by name."""
        return Stay(self, str(name))

    @property
    def tensor_tracker(self) -> TensorTracker:
        """What tracks single tensors."""
        if self._tensors is None:
            self._tensors = TensorTracker()
        return self._tensors

    def call(self, function: Callable[..., Any], arguments: Any, named: Any, name: str = "") -> Profile:
        """Call a function and profile that."""
        with Stay(self, name or function_name(function)) as profile:
            profile.value = function(*arguments, **named)
        return profile

    def decorated(self, function: Callable[..., Any], name: str = "") -> Callable[..., Any]:
        """A function whose calls are profiled; of a coroutine function from the first line to the last."""
        return wrapped(function, name or function_name(function), lambda: self)

    def sums(self, name: str) -> Calls:
        """Of all calls of a name."""
        found = self.calls.get(name)
        if found is None:
            found = self.calls[name] = Calls()
        return found

    def add(self, profile: Profile) -> None:
        """Count one, and keep it without what the function returned: that is the program's to keep or to let go."""
        self.sums(profile.function_name).add(profile)
        if len(self.results) < MOST_RESULTS:
            kept = Profile(profile.function_name, profile.before, profile.device)
            kept.after, kept.error = profile.after, profile.error
            self.results.append(kept)
        else:
            _engine.say_once(
                f"results keeps the first {MOST_RESULTS} calls of a profiler; sums and the recording have all"
            )

    def capture_snapshot(self, operation: str = "snapshot") -> Snapshot:
        """What is held now; the moment is marked in the recording."""
        mark(operation)
        found = Snapshot(time(), operation, read(self.number), self.number or 0)
        if len(self.snapshots) < MOST_RESULTS:
            self.snapshots.append(found)
        return found

    def clear_results(self) -> None:
        """Forget results and sums; the recording keeps all."""
        self.results, self.snapshots, self.calls = [], [], {}
        self.baseline = read(self.number)

    def start_monitoring(self, interval: Optional[float] = None) -> None:
        """Have the engine record, which it does since this profiler was made. Its interval is that of the recording."""
        begin("", interval)

    def stop_monitoring(self) -> None:
        """Changes nothing: the recording ends with the program, or by hightide.stop()."""

    def peak(self) -> int:
        """The most bytes held since this profiler was made, of the device where one is used, else of the host."""
        now = read(self.number)
        return max([peak(self.baseline, now), *(calls.peak for calls in self.calls.values())])

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        return


def begin(name: str = "", interval: Optional[float] = None) -> None:
    """Have this program recorded, unless it is; where that could not be once, it is not tried again."""
    global _refused
    if _refused or _session.recorded():
        return
    _refused = _session.init(name or os.path.basename(sys.argv[0] or "python"), interval=interval) is None
    if _refused:
        _engine.say("nothing is recorded: profiles tell only what both ends of a call show")


_refused = False


def run() -> Optional[str]:
    """The id of the run that records this program, or that last did."""
    return _session.here().get("run") or _session.latest or None


def mark(label: str) -> None:
    """Note a moment in the recording, where there is one."""
    agent = _engine.agent()
    found = agent.agent() if agent is not None and _session.recorded() else None
    if found is not None:
        found.record({"type": "mark", "text": label})


_everywhere: Dict[type, Any] = {}


def shared(kind: Callable[[], Any]) -> Any:
    """The profiler of functions that name none, made at first use."""
    key: Any = kind
    if key not in _everywhere:
        _everywhere[key] = kind()
    return _everywhere[key]


def decorator(kind: Callable[[], Any], function: Union[Callable[..., Any], str, None], name: str) -> Any:
    """@profile_function and @profile_function("name"), for the shared profiler of a kind."""
    if not callable(function):
        named = function or name
        return lambda function: decorator(kind, function, named)
    return wrapped(function, name or function_name(function), lambda: shared(kind))


def wrapped(function: Callable[..., Any], name: str, profiler: Callable[[], Any]) -> Callable[..., Any]:
    """A function each of whose calls is a stay; where nothing is recorded, they are only counted and timed.

    Raises:
        TypeError: a generator, which does not run while it is called: profile the loop over it.
    """
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{name} is a generator: put `with profile_context(…)` around the loop over it")
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            with Stay(profiler(), name):
                return await function(*args, **kwargs)

        return awaited
    counted: Any = None  # the profiler, which begins a recording when it is made

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        nonlocal counted
        if counted is None:
            counted = profiler()
        if (_session.recorder if _session.known else _session.look()) is None:
            start = monotonic_ns()
            try:
                return function(*args, **kwargs)
            finally:
                counted.sums(name).took(monotonic_ns() - start)
        with Stay(counted, name):
            return function(*args, **kwargs)

    return called
