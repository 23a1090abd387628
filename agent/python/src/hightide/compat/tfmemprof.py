"""hightide by the names of tfmemprof: `from hightide.compat.tfmemprof import TFMemoryProfiler`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from time import time
from typing import Any, Callable, Dict, List, Optional

from . import _models, _profiler
from ._analyzer import MemoryAnalyzer
from ._profiler import Profiler, Snapshot, Stay
from ._readings import read
from ._system import MIB, convert_bytes, format_duration, format_memory, system_info
from ._tensors import TensorEvent, TensorTracker
from ._tracker import MemoryTracker as _Tracker
from ._tracker import MemoryWatchdog
from ._visualizer import MemoryVisualizer

__all__ = [
    "MemoryAnalyzer", "MemoryTracker", "MemoryVisualizer", "MemoryWatchdog", "Results", "TFMemoryProfiler",
    "TensorFlowProfiler", "TensorTracker", "convert_bytes", "format_duration", "format_memory",
    "get_global_profiler", "get_gpu_info", "get_profile_summaries", "get_results", "get_system_info",
    "profile_context", "profile_function", "profile_model", "system_info", "track_tensor",
]  # fmt: skip

get_system_info = system_info


@dataclass(frozen=True)
class Results:
    """Sums over all calls so far. Sizes are MiB of the GPU where TensorFlow uses one, else of the host."""

    start_time: float
    end_time: float
    peak_memory_mb: float
    current_memory_mb: float
    memory: str
    """of what the sizes are"""
    function_profiles: Dict[str, Dict[str, Any]]
    snapshots: List[Snapshot]
    tensor_lifecycle: List[TensorEvent]
    run: Optional[str] = None

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.end_time - self.start_time


class TFMemoryProfiler(Profiler):
    """Profiles functions and blocks of a TensorFlow program; of the GPU where it uses one, else of the host.

    Args:
        device: whose figures, as "/GPU:0"; None: the first one.
        enable_tensor_tracking: as in the old names; the recording has lines in any case.
    """

    def __init__(self, device: Any = None, enable_tensor_tracking: bool = True) -> None:
        super().__init__(device)
        self.device, self._began = device, time()

    def profile_function(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a function so that its calls are profiled."""
        return self.decorated(func)

    def get_results(self) -> Results:
        """Sums over all calls so far."""
        now = read(self.number)
        memory = "allocated on the device" if now.on_device else "resident on the host"
        return Results(
            self._began, time(), self.peak() / MIB, now.held / MIB, memory,
            {name: calls.to_dict() for name, calls in self.calls.items()},
            list(self.snapshots), self.tensor_tracker.get_tensor_lifecycle(), _profiler.run(),
        )  # fmt: skip

    def reset(self) -> None:
        """Forget results and sums; the recording keeps all."""
        self.clear_results()
        self._began = time()

    start_continuous_profiling, stop_continuous_profiling = Profiler.start_monitoring, Profiler.stop_monitoring

    def profile_training(self, model: Any, dataset: Any, epochs: int = 1, steps_per_epoch: Optional[int] = None) -> Any:
        """model.fit, each epoch a block named epoch_0, epoch_1 …; what the last one returned."""
        history = None
        for epoch in range(epochs):
            with self.profile_context(f"epoch_{epoch}"):
                history = model.fit(dataset, epochs=1, steps_per_epoch=steps_per_epoch, verbose=0)
        return history

    def profile_inference(self, model: Any, data: Any, batch_size: int = 32) -> Any:
        """model.predict in a block named inference; what it returned."""
        with self.profile_context("inference"):
            return model.predict(data, batch_size=batch_size, verbose=0)


TensorFlowProfiler = TFMemoryProfiler


class MemoryTracker(_Tracker):
    """As gpumemprof's; alert_threshold_mb is a limit in MiB in place of percentages."""

    def __init__(
        self, sampling_interval: float = 1.0, alert_threshold_mb: Optional[float] = None, device: Any = None,
        enable_logging: bool = True, max_history: int = 10_000, **more: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            device, sampling_interval, max_history, more.pop("enable_alerts", alert_threshold_mb is None), **more
        )
        if alert_threshold_mb is not None:
            self.add_size(float(alert_threshold_mb))

    def stop_tracking(self) -> Any:
        """End, and say what was held."""
        super().stop_tracking()
        return self.get_tracking_results()

    def get_tracking_results(self) -> Dict[str, Any]:
        """What was held, as get_statistics() says, with readings and times."""
        line = self.get_memory_timeline(self.sampling_interval)
        return {
            **self.get_statistics(),
            "timestamps": line["timestamps"],
            "memory_usage": line["allocated"],
            "alerts": list(self.alerts),
        }


def get_global_profiler() -> TFMemoryProfiler:
    """The profiler of functions and blocks that name none."""
    found: TFMemoryProfiler = _profiler.shared(TFMemoryProfiler)
    return found


def profile_function(func: Any = None, *, profiler: Optional[Profiler] = None, name: str = "") -> Callable[..., Any]:
    """Decorate a function so that its calls are profiled: @profile_function, @profile_function(name="step")."""
    kind = get_global_profiler if profiler is None else lambda: profiler
    found: Callable[..., Any] = _profiler.decorator(kind, func, name)
    return found


def profile_context(name: str = "context", profiler: Optional[Profiler] = None) -> Stay:
    """Profile a block: `with profile_context("data_loading"):`."""
    return Stay(profiler or get_global_profiler(), name)


def profile_model(model: Any, profiler: Optional[Profiler] = None, name: str = "") -> Any:
    """Profile what a Keras model is asked to do: fit, evaluate, predict and the like. The same model."""
    return _models.profiled_keras(model, name, profiler or get_global_profiler())


def track_tensor(tensor: Any, name: str = "tensor") -> None:
    """Follow a tensor until it is freed: get_global_profiler().tensor_tracker has the events."""
    get_global_profiler().tensor_tracker.track_tensor(tensor, name, 2)


def get_results() -> Results:
    """Of the profiler of functions and blocks that name none."""
    return get_global_profiler().get_results()


def get_profile_summaries(limit: int = 0) -> List[Dict[str, Any]]:
    """Its sums by name, the last few of them."""
    return [{"name": name, **sums} for name, sums in get_results().function_profiles.items()][-limit:]


def get_gpu_info() -> Dict[str, Any]:
    """The GPUs that TensorFlow sees, by name; `available` is False, and `reason` says why, where there are none."""
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None:
        return {"available": False, "reason": "tensorflow is not imported", "count": 0, "devices": []}
    gpus = tensorflow.config.list_physical_devices("GPU")
    if not gpus:
        return {"available": False, "reason": "tensorflow sees no GPU here", "count": 0, "devices": []}
    devices = [{"name": gpu.name, **tensorflow.config.experimental.get_device_details(gpu)} for gpu in gpus]
    return {"available": True, "count": len(gpus), "devices": devices}


# The modules of the old package: each is this one.
PARTS = ("profiler", "tracker", "visualizer", "analyzer", "context_profiler", "utils")
for _part in PARTS:
    sys.modules[f"{__name__}.{_part}"] = sys.modules[__name__]
