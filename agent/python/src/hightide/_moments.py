"""What memory is at a moment, and how high it rose in a part of the program.

Counters are read here at both ends, as the kernel and the allocator keep them; what lies between, and which lines hold
it, the engine is asked for.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import _engine, _session


class Line(NamedTuple):
    """A line of the program, and what it held.

    Attributes:
        file: as the program names it.
        line: its number in the file; 0 where it is not known.
        function: that the line is in; may be empty.
        bytes: what it held.
        error: half of the 95 % interval, in bytes: the heap is sampled. 0 where bytes are exact.
    """

    file: str
    line: int
    function: str
    bytes: int
    error: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.function} {self.bytes / 2**20:.1f} MiB"


@dataclass(frozen=True)
class Snapshot:
    """What this process held at a moment: bytes, None where not known.

    Attributes:
        label: names the moment in the report.
        rss: resident on the host.
        allocated: what the framework's allocator handed out, on the current device.
        reserved: what it held from the device.
        files: allocator snapshots written into the run: one a framework, where it uses a device.
    """

    label: str
    rss: Optional[int]
    allocated: Optional[int]
    reserved: Optional[int]
    files: int


def snapshot(label: str = "") -> Snapshot:
    """Mark this moment in the recording, and have the frameworks' allocators write what they hold on their devices.

    The label names the moment in the report; without one it is "snapshot 1", "snapshot 2" and so on.
    """
    label = str(label)
    agent = _engine.agent()
    if agent is None or not _session.recorded():
        _engine.say_once("snapshot() marks nothing: this program is not recorded")
        return Snapshot(label, _status().get("VmRSS"), None, None, 0)
    files = agent.snapshot(label)
    rss, allocated, reserved = agent.held()
    return Snapshot(label, _known(rss), _known(allocated), _known(reserved), files)


def _known(value: int) -> Optional[int]:
    return value if value >= 0 else None


class Peak:
    """How high memory rose in a block: `with hightide.peak() as peak: …`. Figures are bytes, None where not known.

    The kernel and the frameworks' allocators on devices keep high-water marks. One that rose in the block is its exact
    peak. Else the peak is the highest reading: at both ends and, of a process that is recorded, the engine's between
    them; then `rss_exact` and the like are False.

    Attributes:
        name: of the span that the block is.
        rss: of the whole process, resident on the host.
        allocated: what the framework's allocator handed out, on the current device.
        reserved: what it held from the device.
        rss_exact, allocated_exact, reserved_exact: whether the figure is a mark of the kernel's or the allocator's.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.rss: Optional[int] = None
        self.allocated: Optional[int] = None
        self.reserved: Optional[int] = None
        self.rss_exact = self.allocated_exact = self.reserved_exact = False
        self._stay: Any = None
        self._recorder: Any = None
        self._before: Dict[str, Tuple[int, int]] = {}
        self._lines: Optional[List[Line]] = None

    def __enter__(self) -> Peak:
        self._recorder = _session.recorder if _session.known else _session.look()
        self._before = _marks()
        self._stay = None if self._recorder is None else self._recorder.enter(self.name)
        return self

    def __exit__(self, *_: object) -> None:
        after = _marks()
        if self._stay is not None:
            self._recorder.leave(self._stay)
        for name, (now, mark) in after.items():
            before, before_mark = self._before.get(name, (0, 0))
            exact = mark > before_mark
            setattr(self, name, mark if exact else max(before, now))
            setattr(self, name + "_exact", exact)
        if self.rss is not None and not self.rss_exact:
            self.rss = max(self.rss, self._sampled() or 0)

    @property
    def lines(self) -> List[Line]:
        """The lines that held what memory rose by in the block, most bytes first.

        Empty where none is known: memory did not rise, nothing is recorded, the heap is not sampled, or the engine is
        gone, which one line on standard error says.
        """
        if self._lines is None and self._stay is not None:
            self._lines = self._ask_lines()
        return self._lines or []

    def _report(self) -> Optional[Dict[str, Any]]:
        here = _session.here()
        if not here:
            return None
        _session.wait_until_kept()
        try:
            found: Dict[str, Any] = _engine.ask_json("show", here["run"], data=here["data"])
        except (_engine.Failed, OSError) as error:
            _engine.say(f"the engine cannot be asked: {error}")
            return None
        return found

    def _sampled(self) -> Optional[int]:
        """The highest reading that the engine made in this very stay."""
        report = None if self._stay is None or _short(self._stay) else self._report()
        if report is None:
            return None
        start = self._stay[1] - report["run"]["start_mono_ns"]
        for bar in report["phases"]:
            if bar["phase"] == "user" and bar.get("name") == self.name and bar["start_ns"] == start:
                peak: Optional[int] = bar.get("rss_peak_bytes")
                return peak
        return None

    def _ask_lines(self) -> Optional[List[Line]]:
        from ._runs import rows

        report = self._report()
        if report is None:
            return None
        processes = {p["id"] for p in report["processes"] if p["pid"] == os.getpid()}
        lines = [
            Line(row["file"], row.get("number") or 0, row.get("function") or "", row["bytes"], row.get("error") or 0)
            for row in rows(report, "span-lines")
            if row["span"] == self.name and row.get("process_id") in processes
        ]
        return lines

    def __repr__(self) -> str:
        figures = [
            f"{name}={_words(getattr(self, name), getattr(self, name + '_exact'))}"
            for name in ("rss", "allocated", "reserved")
            if getattr(self, name) is not None
        ]
        return f"Peak({self.name!r}, {', '.join(figures)})"


def _words(value: int, exact: bool) -> str:
    return f"{'' if exact else 'at least '}{value / 2**20:.1f} MiB"


SHORT_NS = 200_000_000  # of a block, below which the engine made a reading or two in it at most


def _short(stay: Any) -> bool:
    from time import monotonic_ns

    return bool(monotonic_ns() - stay[1] < SHORT_NS)


def peak(name: str = "") -> Peak:
    """How high memory rises in a block. It is a span as well, named after its line where it is given no name."""
    if not name:
        frame = sys._getframe(1)
        name = f"peak at {os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
    return Peak(name)


def figures() -> Dict[str, int]:
    """What this process holds now and held at the most, in bytes, named for a logger; what is not known is left out.

    hightide/rss and hightide/peak_rss: resident on the host. hightide/allocated, hightide/reserved and their peaks: by
    the framework's allocator, on PyTorch's current device, on the first one of JAX and TensorFlow. Peaks are exact, and
    of the whole life of the process.
    """
    found = {}
    for name, (now, mark) in _marks().items():
        found[f"hightide/{name}"], found[f"hightide/peak_{name}"] = now, max(now, mark)
    return found


def _status() -> Dict[str, int]:
    """The sizes in /proc/self/status, in bytes."""
    sizes = {}
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            for line in status:
                key, _, rest = line.partition(":")
                words = rest.split()
                if len(words) == 2 and words[1] == "kB":
                    sizes[key] = int(words[0]) * 1024
    except (OSError, ValueError):
        pass
    return sizes


def _marks() -> Dict[str, Tuple[int, int]]:
    """What is held now and the most ever, as far as somebody keeps that."""
    status = _status()
    marks = {}
    if "VmRSS" in status and "VmHWM" in status:
        marks["rss"] = status["VmRSS"], status["VmHWM"]
    for device in (_torch, _jax, _tensorflow):
        try:
            found = device()
        except Exception:  # another version, or one that is half imported
            continue
        if found:
            return {**marks, **found}
    return marks


def _torch() -> Dict[str, Tuple[int, int]]:
    torch = sys.modules.get("torch")
    if torch is None:
        return {}
    if not torch.cuda.is_initialized():
        return _accelerator(torch)
    stats = torch._C._cuda_memoryStats(torch._C._cuda_getDevice())
    return {
        name: (stats[name + "_bytes"]["all"]["current"], stats[name + "_bytes"]["all"]["peak"])
        for name in ("allocated", "reserved")
    }


def _accelerator(torch: Any) -> Dict[str, Tuple[int, int]]:
    """Of the current device that is none of CUDA's, from PyTorch 2.9 on."""
    begun = getattr(torch._C, "_accelerator_isAllocatorInitialized", None)
    if begun is None or not begun():
        return {}
    of = torch.accelerator
    return {
        "allocated": (of.memory_allocated(), of.max_memory_allocated()),
        "reserved": (of.memory_reserved(), of.max_memory_reserved()),
    }


def _jax() -> Dict[str, Tuple[int, int]]:
    """Of its first device, where the program has started it. On the host JAX counts nothing."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is None or not bridge.backends_are_initialized():
        return {}
    stats = sys.modules["jax"].local_devices()[0].memory_stats() or {}
    keys = {"allocated": ("bytes_in_use", "peak_bytes_in_use"), "reserved": ("pool_bytes", "peak_pool_bytes")}
    return {name: (stats[now], stats[peak]) for name, (now, peak) in keys.items() if now in stats and peak in stats}


def _tensorflow() -> Dict[str, Tuple[int, int]]:
    """Of its first GPU, where the program has started it."""
    context = sys.modules.get("tensorflow.python.eager.context")
    if context is None or context.context_safe() is None or not context.context_safe()._initialized:
        return {}
    config = sys.modules["tensorflow"].config
    if not config.list_logical_devices("GPU"):
        return {}
    info = config.experimental.get_memory_info("GPU:0")
    return {"allocated": (info["current"], info["peak"])}
