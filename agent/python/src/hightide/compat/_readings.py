"""What this process holds at a moment, read in place: both ends of a call must know it at once.

The kernel's count of resident pages and its mark of their most; the counters of PyTorch's or TensorFlow's allocator on
a GPU, where one is used. All else the engine is asked for.
"""

from __future__ import annotations

import os
import resource
import sys
from time import monotonic_ns
from typing import Any, NamedTuple, Optional

PAGE = os.sysconf("SC_PAGE_SIZE")
FRESH_NS = 20_000  # within which a reading still stands
_NOTHING = (0, 0, 0, 0, 0, 0)


class Reading(NamedTuple):
    """Bytes at a moment. Of a device they are 0 where this process uses none: then it holds nothing there."""

    at_ns: int
    """of the monotonic clock"""
    rss: int
    rss_mark: int
    """the most that was ever resident"""
    allocated: int = 0
    allocated_mark: int = 0
    reserved: int = 0
    reserved_mark: int = 0
    active: int = 0
    inactive: int = 0
    """of blocks that are partly in use, what is not"""

    @property
    def on_device(self) -> bool:
        """Whether a device is used."""
        return self.reserved_mark > 0 or self.allocated_mark > 0

    @property
    def held(self) -> int:
        """What profiles are of: the device's memory where one is used, else the host's."""
        return self.allocated if self.on_device else self.rss

    @property
    def mark(self) -> int:
        """The most of it so far."""
        return self.allocated_mark if self.on_device else self.rss_mark


_statm = -1
_last = Reading(0, 0, 0)


def read(device: Optional[int] = None) -> Reading:
    """Read now; on the current device, or on that of a number."""
    global _last
    now = monotonic_ns()
    counters = _device(device)
    if now - _last.at_ns < FRESH_NS:
        return Reading(now, _last.rss, _last.rss_mark, *counters)
    rss = _resident()
    _last = Reading(now, rss, max(rss, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10), *counters)
    return _last


def peak(before: Reading, after: Reading) -> int:
    """The most that was held between two readings, as far as they tell: exact where the mark rose."""
    if after.mark > before.mark and after.on_device == before.on_device:
        return after.mark
    return max(before.held if before.on_device == after.on_device else 0, after.held)


def _resident() -> int:
    """Bytes resident; the descriptor is kept open."""
    global _statm
    try:
        return int(os.pread(_statm, 80, 0).split()[1]) * PAGE
    except (OSError, ValueError, IndexError):
        pass
    try:
        _statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        return int(os.pread(_statm, 80, 0).split()[1]) * PAGE
    except (OSError, ValueError, IndexError):
        return 0


def _forget() -> None:
    """In a forked child the descriptor shows the parent."""
    global _statm, _last
    if _statm >= 0:
        os.close(_statm)
    _statm, _last = -1, Reading(0, 0, 0)


os.register_at_fork(after_in_child=_forget)


def _device(number: Optional[int]) -> Any:
    torch = sys.modules.get("torch")
    if torch is not None:
        try:
            if torch.cuda.is_initialized():
                return _torch(torch, number)
        except AttributeError:  # it is being imported
            pass
    tensorflow = sys.modules.get("tensorflow")
    return _NOTHING if tensorflow is None else _tensorflow(tensorflow, number or 0)


def _torch(torch: Any, number: Optional[int]) -> Any:
    stats = torch._C._cuda_memoryStats(torch._C._cuda_getDevice() if number is None else number)
    allocated, reserved = stats["allocated_bytes"]["all"], stats["reserved_bytes"]["all"]
    return (
        allocated["current"], allocated["peak"], reserved["current"], reserved["peak"],
        stats["active_bytes"]["all"]["current"], stats["inactive_split_bytes"]["all"]["current"],
    )  # fmt: skip


_has_gpu: Optional[bool] = None


def _tensorflow(tensorflow: Any, number: int) -> Any:
    global _has_gpu
    try:
        if _has_gpu is None:  # asking sets devices up, which the first operation does anyway
            _has_gpu = bool(tensorflow.config.list_physical_devices("GPU"))
        if not _has_gpu:
            return _NOTHING
        info = tensorflow.config.experimental.get_memory_info(f"GPU:{number}")
    except Exception:  # it is being imported, or knows no such device
        return _NOTHING
    return info["current"], info["peak"], info["current"], info["peak"], info["current"], 0
