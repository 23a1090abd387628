"""PyTorch's profiler: torch.profiler.profile(on_trace_ready=hightide.trace_handler("traces"))."""

from __future__ import annotations

import os
import socket
from time import time_ns
from typing import Any, Callable, Union

from . import _engine, _moments, _session
from ._trainer import harmless


def trace_handler(folder: Union[str, os.PathLike[str]] = "traces") -> Callable[[Any], None]:
    """Have this program recorded, and return what writes each trace into a folder and marks it in the run.

    Files are named as torch.profiler.tensorboard_trace_handler names them. `hightide explain FILE` shows who held
    memory in one, where the profiler was started with profile_memory=True, and lines with with_stack=True.
    """
    if not _session.recorded():
        _session.init()

    @harmless
    def trace_ready(profiler: Any) -> None:
        os.makedirs(folder, exist_ok=True)
        name = f"{socket.gethostname()}_{os.getpid()}.{time_ns()}.pt.trace.json.gz"
        path = os.path.join(folder, name)
        profiler.export_chrome_trace(path)
        if _session.recorded():
            _moments.snapshot(f"profiler's trace {path}")
        if not getattr(profiler, "profile_memory", True):
            _engine.say_once(f"{path} tells nothing of memory: give torch.profiler.profile profile_memory=True")

    return trace_ready
