"""A stretch of a recording with limits: what was held in it, when limits were passed, and clean-ups.

MemoryTracker ─▶ start, stop are moments of the recording; limits ─▶ the engine's alerts ─▶ callbacks
MemoryWatchdog ─▶ the same alerts ─▶ clean_up(), each noted in the recording
"""

from __future__ import annotations

import contextlib
import csv
import functools
import gc
import json
import os
import sys
from time import monotonic_ns, time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .. import _engine, _session
from ._limits import memory, watch
from ._pictures import Curve
from ._profiler import begin, mark
from ._readings import Reading, peak, read
from ._recording import Found, ask
from ._system import MIB, number_of


class TrackingEvent(NamedTuple):
    """What was held at a moment, or a limit that was passed. Bytes; None: not known."""

    timestamp: float
    """seconds since 1970"""
    event_type: str
    """sample, or the name of the limit: warning, critical, or what else was asked for"""
    memory_allocated: Optional[int]
    memory_reserved: Optional[int]
    context: str = ""
    memory: str = ""
    """of what it is: resident on the host, allocated on the device …"""

    def to_dict(self) -> Dict[str, Any]:
        """By name."""
        return dict(self._asdict())


class Alarm(NamedTuple):
    """A limit, what it is called, and how to stop listening."""

    name: str
    limit: str
    end: Callable[[], None]


class MemoryTracker:
    """The engine records all the time; a tracker says what was in a stretch of it, and what happens at limits.

    Args:
        device: whose limits; None: the current one.
        sampling_interval: seconds between the engine's readings, where this starts it.
        enable_alerts: whether warning_threshold and critical_threshold are watched.
        warning_threshold, critical_threshold: percent of the device's memory, or without a GPU of the host's.
        max_events: that get_events() returns, evenly chosen of what there is.
    """

    def __init__(
        self, device: Any = None, sampling_interval: float = 0.1, max_events: int = 10_000, enable_alerts: bool = True,
        warning_threshold: float = 80.0, critical_threshold: float = 95.0, **more: Any,
    ) -> None:  # fmt: skip
        if not sampling_interval > 0:
            raise ValueError(f"a sampling interval of {sampling_interval} s is not a time to wait")
        unknown = [name for name in more if name not in _FLIGHT_RECORDER]
        if unknown:
            raise TypeError(f"MemoryTracker has no argument {unknown[0]!r}")
        self.number = number_of(device)
        self.sampling_interval, self.max_events, self.enable_alerts = sampling_interval, max_events, enable_alerts
        self.thresholds: Dict[str, float] = {}
        self.set_threshold("warning", warning_threshold)
        self.set_threshold("critical", critical_threshold)
        self.alerts: List[TrackingEvent] = []
        self._callbacks: List[Callable[[TrackingEvent], object]] = []
        self._alarms: List[Alarm] = []
        self._start = self._end = 0
        self._before = self._after = Reading(0, 0, 0)
        self._own: List[Tuple[str, str]] = []

    @property
    def is_tracking(self) -> bool:
        """Whether it was started, and not stopped since."""
        return bool(self._start) and not self._end

    def set_threshold(self, name: str, percent: float) -> None:
        """Another percentage of "warning" or "critical"; old names such as memory_warning_percent are understood.

        Raises:
            ValueError: there is no such threshold, or it is not a percentage.
        """
        short = next((kind for kind in ("warning", "critical") if kind in name), "")
        if not short:
            raise ValueError(f"there is no threshold {name!r}; there are warning and critical")
        if not 0 < float(percent) <= 100:
            raise ValueError(f"{percent} is not a percentage: the {short} threshold is above 0 and at most 100")
        self.thresholds[short] = float(percent)

    def add_alert(self, limit: str, name: str = "") -> None:
        """Watch a limit of hightide's own, as "rss > 2GiB" or "rss > 50MiB/step", once tracking begins."""
        self._own.append((name or limit, limit))

    def add_size(self, mib: float, name: str = "threshold") -> None:
        """Watch a size in MiB of what profiles are of: the device's memory where there is one, else the host's."""
        if not mib > 0:
            raise ValueError(f"{mib} MiB is not a threshold")
        self._own.append((name, f"{mib:g}MiB"))

    def add_alert_callback(self, callback: Callable[[TrackingEvent], object]) -> None:
        """Call back with an event each time a limit is passed anew, on a thread of its own."""
        self._callbacks.append(callback)

    def remove_alert_callback(self, callback: Callable[[TrackingEvent], object]) -> None:
        """Do not call that back any more."""
        if callback in self._callbacks:
            self._callbacks.remove(callback)

    def start_tracking(self) -> None:
        """Begin: from here on what is held counts, and limits are watched."""
        if self.is_tracking:
            _engine.say("start_tracking() was called before: tracking goes on")
            return
        begin("", self.sampling_interval)
        mark("tracking begins")
        self._start, self._end, self._before = monotonic_ns(), 0, read(self.number)
        limits = [
            (name, limit if ">" in limit or "<" in limit else f"{memory()} > {limit}") for name, limit in self._own
        ]
        if self.enable_alerts:
            limits += [(name, f"{memory()} > {percent:g}%") for name, percent in self.thresholds.items()]
        for name, limit in limits if _session.recorded() else ():
            self._alarms.append(Alarm(name, limit, watch(limit, self._hears(name, limit))))

    def stop_tracking(self) -> None:
        """End: what is held from here on does not count. The recording goes on."""
        if not self.is_tracking:
            return
        self._end, self._after = monotonic_ns(), read(self.number)
        mark("tracking ends")
        for alarm in self._alarms:
            alarm.end()
        self._alarms = []

    def __enter__(self) -> MemoryTracker:
        self.start_tracking()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_tracking()

    def _hears(self, name: str, limit: str) -> Callable[[int], None]:
        def heard(value: int) -> None:
            event = TrackingEvent(time(), name, value, None, limit, limit.split(maxsplit=1)[0])
            self.alerts.append(event)
            for callback in list(self._callbacks):
                callback(event)

        return heard

    def _stretch(self) -> Tuple[Optional[Found], List[Curve]]:
        """The recording, and the curves of it between start and stop."""
        found = ask() if self._start else None
        if found is None:
            return None, []
        end = found.seconds(self._end) if self._end else None
        return found, found.curves(found.seconds(self._start), end)

    def get_statistics(self) -> Dict[str, Any]:
        """What was held between start and stop, in bytes and seconds; `memory` says of what.

        Where nothing is recorded it tells what both ends show. Before start_tracking() it is empty.
        """
        if not self._start:
            return {}
        after = self._after if self._end else read(self.number)
        long = ((self._end or monotonic_ns()) - self._start) / 1e9
        found, curves = self._stretch()
        values = [y for _, y in curves[0].points] if curves else [float(self._before.held), float(after.held)]
        exact = peak(self._before, after)
        most = max(int(max(values)), exact) if _same(curves, after) else int(max(values))
        return {
            "memory": curves[0].name if curves else "allocated on the device" if after.on_device else "RSS",
            "peak_memory": most, "average_memory": int(sum(values) / len(values)), "min_memory": int(min(values)),
            "start_memory": int(values[0]), "current_memory": int(values[-1]),
            "current_memory_allocated": after.allocated, "current_memory_reserved": after.reserved,
            "memory_change": int(values[-1] - values[0]), "tracking_duration_seconds": long,
            "memory_growth_rate": (values[-1] - values[0]) / long if long > 0 else 0.0,
            "total_events": len(values) + len(self.alerts), "sample_count": len(values),
            "alert_count": len(self.alerts), "run": found.id if found is not None else None,
        }  # fmt: skip

    def get_events(self, event_type: str = "", last_n: int = 0) -> List[TrackingEvent]:
        """Readings and passed limits between start and stop, by time; of one type; the last few."""
        found, curves = self._stretch()
        events = list(self.alerts)
        if found is not None and curves:
            wall = int(found.data["run"]["start_wall_ns"]) / 1e9
            allocated = curves[0].points
            reserved = next((dict(c.points) for c in curves if c.name == "reserved on the device"), {})
            every = max(1, -(-len(allocated) // self.max_events))
            events += [
                TrackingEvent(wall + at, "sample", int(value), _whole(reserved.get(at)), "", curves[0].name)
                for at, value in allocated[::every]
            ]
        events = sorted((e for e in events if not event_type or e.event_type == event_type), key=lambda e: e.timestamp)
        return events[-last_n:] if last_n else events

    def get_memory_timeline(self, interval: float = 1.0) -> Dict[str, List[Any]]:
        """Times (seconds since 1970) and bytes, the highest of each interval."""
        bins: Dict[int, TrackingEvent] = {}
        for event in self.get_events("sample"):
            place = int(event.timestamp / interval)
            if place not in bins or (event.memory_allocated or 0) > (bins[place].memory_allocated or 0):
                bins[place] = event
        chosen = [bins[place] for place in sorted(bins)]
        return {
            "timestamps": [e.timestamp for e in chosen], "allocated": [e.memory_allocated for e in chosen],
            "reserved": [e.memory_reserved for e in chosen],
        }  # fmt: skip

    def export_events(self, filename: Any, format: str = "") -> str:
        """Write readings and passed limits, as JSON or CSV; `hightide analyze FILE` reads them again. The path.

        Raises:
            ValueError: the format is neither.
        """
        path = str(os.fspath(filename))
        format = format or os.path.splitext(path)[1].lstrip(".").lower() or "json"
        if format not in ("json", "csv"):
            raise ValueError(f"{path}: events are written as json or csv, not {format}")
        rows = [self._record(event) for event in self.get_events()]
        with open(path, "w", encoding="utf-8", newline="") as file:
            if format == "json":
                json.dump(rows, file, indent=1)
            else:
                writer = csv.DictWriter(file, list(self._record(_NO_EVENT)))
                writer.writeheader()
                writer.writerows(rows)
        return path

    def _record(self, event: TrackingEvent) -> Dict[str, Any]:
        on_device = "device" in event.memory or event.memory == "allocated"
        return {
            "timestamp_ns": int(event.timestamp * 1e9), "event_type": event.event_type,
            "collector": "hightide.device" if on_device else "hightide.host", "pid": os.getpid(),
            "device_id": (self.number or 0) if on_device else -1,
            "allocator_allocated_bytes": event.memory_allocated, "allocator_reserved_bytes": event.memory_reserved,
            "sampling_interval_ms": int(self.sampling_interval * 1e3), "context": event.context,
        }  # fmt: skip

    @contextlib.contextmanager
    def capture_oom(self, context: str = "runtime") -> Iterator[None]:
        """A block whose out-of-memory is told: the engine writes the allocator's snapshot by itself."""
        try:
            yield
        except (RuntimeError, MemoryError) as error:
            if is_out_of_memory(error):
                self.handle_exception(error, context)
            raise

    def handle_exception(self, error: BaseException, context: str = "") -> Optional[str]:
        """Note an out-of-memory in the recording; the run's id, None: it was something else, or nothing is recorded."""
        if not is_out_of_memory(error):
            return None
        mark(f"out of memory{' in ' + context if context else ''}: {str(error).splitlines()[0][:200]}")
        return _session.here().get("run")

    def clear_events(self) -> None:
        """Forget the limits that were passed, and begin the stretch anew."""
        self.alerts = []
        if self._start:
            self._start, self._before = monotonic_ns(), read(self.number)


_NO_EVENT = TrackingEvent(0.0, "sample", None, None)
# What the engine does in any case: it writes the allocator's snapshot on an out-of-memory, into the run.
_FLIGHT_RECORDER = (
    "enable_oom_flight_recorder",
    "oom_dump_dir",
    "oom_buffer_size",
    "oom_max_dumps",
    "oom_max_total_mb",
)


def _same(curves: List[Curve], reading: Reading) -> bool:
    """Whether the marks that are read in place are of what the first curve shows."""
    if not curves:
        return True
    return curves[0].name == "allocated on the device" if reading.on_device else curves[0].name == "RSS"


def _whole(value: Optional[float]) -> Optional[int]:
    return None if value is None else int(value)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out, of the device or of the host."""
    return (
        isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__ or "out of memory" in str(error).lower()
    )


class CleanUp(NamedTuple):
    """What a watchdog did. Bytes of the device where one is used, else of the host."""

    timestamp: float
    """seconds since 1970"""
    reason: str
    before: int
    after: int
    error: str = ""
    """what a callback raised"""

    @property
    def freed(self) -> int:
        """Bytes less than before; 0: none."""
        return max(self.before - self.after, 0)


class MemoryWatchdog:
    """Cleans up when memory passes a threshold: garbage, the allocator's cache, and what callbacks do.

    Args:
        max_memory_mb: clean up at this many MiB, at whatever came before.
        cleanup_threshold_mb: clean up at this many MiB first.
        tracker: a MemoryTracker, of whose percentages the thresholds are where no sizes are given.
        cleanup_threshold, aggressive_cleanup_threshold: shares of the memory there is, from 0 to 1, in place of sizes.
        auto_cleanup: False: only what callbacks do.
    """

    def __init__(
        self, max_memory_mb: Any = None, cleanup_threshold_mb: Any = None, tracker: Any = None,
        auto_cleanup: bool = True, cleanup_threshold: float = 0.9, aggressive_cleanup_threshold: float = 0.95,
    ) -> None:  # fmt: skip
        if isinstance(max_memory_mb, MemoryTracker):  # the old order of arguments
            tracker, max_memory_mb = max_memory_mb, None
            if isinstance(cleanup_threshold_mb, bool):
                auto_cleanup, cleanup_threshold_mb = cleanup_threshold_mb, None
        for value in (max_memory_mb, cleanup_threshold_mb):
            if value is not None and not float(value) > 0:
                raise ValueError(f"{value} MiB is not a threshold")
        if max_memory_mb is not None and cleanup_threshold_mb is not None and cleanup_threshold_mb > max_memory_mb:
            raise ValueError(
                f"clean-up at {cleanup_threshold_mb} MiB comes after the most of {max_memory_mb} MiB: swap them"
            )
        self.tracker, self.auto_cleanup = tracker, auto_cleanup
        if max_memory_mb is None and cleanup_threshold_mb is None:
            self.limits = [f"{100 * share:g}%" for share in (cleanup_threshold, aggressive_cleanup_threshold)]
        else:
            self.limits = [f"{float(mb):g}MiB" for mb in (cleanup_threshold_mb, max_memory_mb) if mb is not None]
        self.actions: List[CleanUp] = []
        self._callbacks: List[Callable[[], object]] = []
        self._ends: List[Callable[[], None]] = []

    def add_cleanup_callback(self, callback: Callable[[], object]) -> None:
        """Call this at each clean-up, after garbage and caches were let go."""
        self._callbacks.append(callback)

    def start(self) -> None:
        """Begin to watch. Memory that is above a threshold already is cleaned up at once."""
        if self._ends:
            return
        begin()
        if not _session.recorded():
            _engine.say("the watchdog watches nothing: this program is not recorded")
            return
        for text in self.limits:
            limit = f"{memory()} > {text}"
            self._ends.append(watch(limit, functools.partial(self._passed, limit)))
            if text.endswith("MiB") and read().held > float(text[:-3]) * MIB:
                self.clean_up(f"{limit}: it was above as the watchdog began")

    def _passed(self, limit: str, value: int) -> None:
        self.clean_up(f"{limit}: it was {value / MIB:.0f} MiB")

    def stop(self) -> None:
        """Watch no more."""
        for end in self._ends:
            end()
        self._ends = []

    def __enter__(self) -> MemoryWatchdog:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def force_cleanup(self, aggressive: bool = False) -> CleanUp:
        """Clean up now."""
        return self.clean_up("it was asked for")

    def clean_up(self, reason: str) -> CleanUp:
        """Let go of garbage and of the allocator's cache, call the callbacks, and note what that freed."""
        before, errors = read(), []
        if self.auto_cleanup:
            gc.collect()
            torch = sys.modules.get("torch")
            if torch is not None and before.on_device:
                torch.cuda.empty_cache()
        for callback in list(self._callbacks):
            try:
                callback()
            except Exception as error:  # the others still run, and the program goes on
                errors.append(f"{type(error).__name__}: {error}")
                _engine.say(f"a clean-up raised {errors[-1]}")
        getattr(_engine.agent(), "let_go", bool)()  # an older engine has none
        held = "reserved" if before.on_device else "rss"
        action = CleanUp(time(), reason, getattr(before, held), getattr(read(), held), "; ".join(errors))
        self.actions.append(action)
        mark(f"clean-up, {reason}; freed {action.freed / MIB:.1f} MiB")
        return action

    def get_cleanup_stats(self) -> Dict[str, Any]:
        """How often it cleaned up, and what that freed, in bytes."""
        return {
            "cleanup_count": len(self.actions), "freed": sum(action.freed for action in self.actions),
            "last_cleanup_time": self.actions[-1].timestamp if self.actions else None, "actions": list(self.actions),
        }  # fmt: skip
