"""Run one batch size and say what it took, or that it did not fit."""

from __future__ import annotations

import gc
import resource
import time
import traceback
from typing import Any, Callable, Dict, List, Optional

from .names import Unknown

TIMED = 5  # steps, on a device that really computes
LONG_ENOUGH = 5_000_000_000  # ns for all of them
MOST_WORDS = 1000  # characters of an error, twice what PyTorch says of a lack of memory; a cut is marked

# What frameworks say when there is no room. Torch has its own class since 1.13; the CPU allocator and
# MemoryError have none of their own.
OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "std::bad_alloc",
    "cannot allocate memory",
    "alloc_failed",  # CUBLAS_STATUS_ALLOC_FAILED and its like: the library found no room beside torch's allocator
)


def run(
    step: Callable[[int, bool], None], batch: int, forward_only: bool, steps: int, device: str, timed: bool
) -> Dict[str, Any]:
    """Run a batch size on a device, `steps` times and then TIMED times where time means something.

    Returns:
        The fields of a trial line (internal/fit): batch, ok, and bytes where they were seen;
        `problem` where it ran out of memory, `error` where it failed otherwise.
    """
    meter = CudaMeter() if device == "cuda" else HostMeter()
    result: Dict[str, Any] = {"batch": batch, "ok": True}
    try:
        for _ in range(steps):
            step(batch, forward_only)
        result.update(meter.read())
        if timed:
            result["step_time_ns"] = _median_time(lambda: step(batch, forward_only), meter.synchronize)
    except Exception as error:
        result["ok"] = False
        if ran_out(error):
            result["problem"] = _words(error)
            result.update(meter.read())
        else:
            result["error"] = describe(error)
    return result


def ran_out(error: BaseException) -> bool:
    """Whether memory was the reason, for whatever device."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(words in text for words in OUT_OF_MEMORY)


def _words(error: BaseException) -> str:
    """The framework's own sentence, without where in its source it was raised."""
    text = str(error).split("\n")[0]
    if "ALLOC_FAILED" in text:
        text = "out of memory beside PyTorch's allocator: %s" % text.replace("CUDA error: ", "")
    _, mark, rest = text.partition("DefaultCPUAllocator: ")
    return _shorten(rest if mark else text or type(error).__name__)


def _shorten(text: str) -> str:
    left = len(text) - MOST_WORDS
    return text if left <= 0 else "%s … (%d more characters)" % (text[:MOST_WORDS], left)


def describe(error: BaseException) -> str:
    """The last line of the traceback and where in the user's own reach it was raised; of ours only the words."""
    if isinstance(error, Unknown):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    where = next((f for f in reversed(frames) if "site-packages" not in f.filename and "_fit" not in f.filename), None)
    text = f"{type(error).__name__}: {str(error).strip() or 'no text'}"
    return text + (f" ({where.filename}:{where.lineno})" if where else "")


def _median_time(once: Callable[[], Any], synchronize: Callable[[], None]) -> int:
    """Nanoseconds of a step: the median of TIMED, of fewer where a step takes seconds."""
    times: List[int] = []
    while len(times) < TIMED and sum(times) < LONG_ENOUGH:
        synchronize()
        start = time.perf_counter_ns()
        once()
        synchronize()
        times.append(time.perf_counter_ns() - start)
    return sorted(times)[len(times) // 2]


class CudaMeter:
    """The peaks of torch's caching allocator, and what the device says is in use."""

    def __init__(self) -> None:
        import torch

        self._cuda = torch.cuda
        self._cuda.init()
        gc.collect()
        self._cuda.empty_cache()
        self._cuda.reset_peak_memory_stats()

    def read(self) -> Dict[str, Any]:
        """Bytes: peaks since the meter was made; used is what the device would show at the peak of reserved."""
        free, total = self._cuda.mem_get_info()
        stats = self._cuda.memory_stats()
        held = stats["reserved_bytes.all.current"]
        most = stats["reserved_bytes.all.peak"]
        outside = total - free - held  # context, libraries, other processes
        return {
            "peak_allocated_bytes": stats["allocated_bytes.all.peak"],
            "peak_reserved_bytes": most,
            "device_used_bytes": outside + most,
            "capacity_bytes": total - outside,
            "total_bytes": total,
        }

    def synchronize(self) -> None:
        self._cuda.synchronize()


class HostMeter:
    """The process's own memory above what it had; the limit is RLIMIT_DATA (see worker.py)."""

    def __init__(self) -> None:
        gc.collect()
        self._before = _resident()

    def read(self) -> Dict[str, Any]:
        peak = max(0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - self._before)
        limit, _ = resource.getrlimit(resource.RLIMIT_DATA)
        result: Dict[str, Any] = {"peak_allocated_bytes": peak, "device_used_bytes": peak + self._before}
        if limit != resource.RLIM_INFINITY:
            result["capacity_bytes"] = max(0, limit - self._before)
            result["total_bytes"] = limit
        return result

    def synchronize(self) -> None:
        pass


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def available() -> Optional[int]:
    """Bytes that the machine can still give, by MemAvailable; None where the kernel does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as f:
            for line in f:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None
