"""hightide by the names of gpumemprof: `from hightide.compat.gpumemprof import GPUMemoryProfiler`."""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, Optional

from . import _models, _profiler, _system
from ._analyzer import MemoryAnalyzer, MemoryPattern, PerformanceInsight
from ._pictures import Picture
from ._profiler import Profile, Profiler, Snapshot, Stay
from ._readings import read
from ._system import convert_bytes, format_duration, format_memory, get_gpu_info, parse_memory, system_info
from ._tensors import TensorTracker
from ._tracker import MemoryTracker, MemoryWatchdog, TrackingEvent
from ._visualizer import Dashboard, MemoryVisualizer

__all__ = [
    "Dashboard", "GPUMemoryProfiler", "MemoryAnalyzer", "MemoryPattern", "MemorySnapshot", "MemoryTracker",
    "MemoryVisualizer", "MemoryWatchdog", "PerformanceInsight", "Picture", "ProfileResult", "ProfiledModule",
    "TensorTracker", "TrackingEvent", "clear_results", "convert_bytes", "format_bytes", "format_duration",
    "format_memory", "get_global_profiler", "get_gpu_info", "get_profile_results", "get_summary",
    "get_system_info", "parse_memory", "profile_context", "profile_function", "profile_model", "system_info",
    "track_tensor",
]  # fmt: skip

MemorySnapshot, ProfileResult = Snapshot, Profile
get_system_info, format_bytes = system_info, format_memory


class GPUMemoryProfiler(Profiler):
    """Profiles calls and blocks; its figures are of the GPU where PyTorch uses one, else of the host.

    Args:
        device: whose figures, as 0 or "cuda:0"; None: the current one.
        track_tensors, enable_tensor_tracking, track_cpu_memory, collect_stack_traces: taken as the old names have
            them, and without effect: the recording has lines and stacks in any case.
    """

    def __init__(
        self, device: Any = None, track_tensors: bool = True, track_cpu_memory: bool = True,
        collect_stack_traces: bool = False, enable_tensor_tracking: bool = True,
        max_snapshots: int = _profiler.MOST_RESULTS,
    ) -> None:  # fmt: skip
        super().__init__(device)
        cuda = _system.cuda()
        if self.number is not None and cuda is not None and self.number >= cuda.device_count():
            raise ValueError(f"there is no GPU {self.number}: torch sees {cuda.device_count()}")
        self.device = device

    def profile_function(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Profile:
        """Call a function, and profile the call; `.value` is what it returned."""
        return self.call(func, args, kwargs)

    def get_summary(self) -> Dict[str, Any]:
        """Sums over all calls so far, in bytes and seconds; `memory` says of what."""
        now = read(self.number)
        calls = self.calls.values()
        return {
            "device": str(self.device if self.device is not None else "cuda" if now.on_device else "cpu"),
            "memory": "allocated on the device" if now.on_device else "resident on the host",
            "total_functions_profiled": len(self.calls), "total_function_calls": sum(c.count for c in calls),
            "total_execution_time": sum(c.time_ns for c in calls) / 1e9, "peak_memory_usage": self.peak(),
            "current_memory_usage": now.held, "baseline_memory_usage": self.baseline.held,
            "memory_change_from_baseline": now.held - self.baseline.held,
            "net_memory_change": sum(c.change for c in calls),
            "total_memory_allocated": sum(c.allocated for c in calls),
            "total_memory_freed": sum(c.freed for c in calls),
            "function_summaries": {name: c.to_dict() for name, c in self.calls.items()},
            "snapshots_collected": len(self.snapshots), "run": _profiler.run(),
        }  # fmt: skip


def get_global_profiler(device: Any = None) -> GPUMemoryProfiler:
    """The profiler of functions and blocks that name none."""
    found: GPUMemoryProfiler = _profiler.shared(GPUMemoryProfiler)
    return found


def profile_function(
    func: Any = None, *, name: str = "", device: Any = None, profiler: Optional[Profiler] = None
) -> Callable[..., Any]:
    """Decorate a function so that its calls are profiled: @profile_function, @profile_function(name="step")."""
    found: Callable[..., Any] = _profiler.decorator(_of(profiler), func, name)
    return found


def profile_context(name: str = "context", device: Any = None, profiler: Optional[Profiler] = None) -> Stay:
    """Profile a block: `with profile_context("data_loading"):`."""
    return Stay(profiler or get_global_profiler(), name)


def ProfiledModule(module: Any, name: str = "", device: Any = None, profiler: Optional[Profiler] = None) -> Any:
    """A torch.nn.Module in one that profiles its forward, and that of its direct children."""
    return _models.profiled_module(module, name, profiler or get_global_profiler())


profile_model = ProfiledModule


def track_tensor(tensor: Any, name: str = "tensor") -> None:
    """Follow a tensor until it is freed: get_global_profiler().tensor_tracker has the events."""
    get_global_profiler().tensor_tracker.track_tensor(tensor, name, 2)


def get_summary() -> Dict[str, Any]:
    """Of the profiler of functions and blocks that name none."""
    return get_global_profiler().get_summary()


def get_profile_results(limit: int = 0) -> Any:
    """Its results, the last few of them."""
    return get_global_profiler().results[-limit:]


def clear_results() -> None:
    """Have it forget its results and sums."""
    get_global_profiler().clear_results()


def _of(profiler: Optional[Profiler]) -> Callable[[], Any]:
    return get_global_profiler if profiler is None else lambda: profiler


# The modules of the old package: each is this one.
PARTS = ("profiler", "tracker", "visualizer", "analyzer", "context_profiler", "utils", "system_info", "formatting")
for _part in PARTS:
    sys.modules[f"{__name__}.{_part}"] = sys.modules[__name__]
