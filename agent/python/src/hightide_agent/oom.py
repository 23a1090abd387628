"""Out of memory, as exceptions tell of it: PyTorch's CPU allocator, NumPy, MemoryError.

The CUDA allocator's is told by pytorch/cuda.py, before the exception exists.
"""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from .agent import Agent
from .places import text_of, where

_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "PiB": 1 << 50, "EiB": 1 << 60}
_last = 0  # id of the exception that was recorded last: it may pass several places


def notice(agent: Agent, error: BaseException, step: int = -1) -> None:
    """Record an `oom` if the exception is one. Never raises, keeps no reference to it."""
    global _last
    try:
        found = classify(error)
        if found is None or _last == id(error):
            return
        _last = id(error)
        source, size = found
        file, line, function = where(error)
        record: Dict[str, Any] = {"type": "oom", "text": text_of(error), "source": source, "file": file, "line": line,
                                  "function": function, "device": "cpu"}  # fmt: skip
        if size is not None:
            record["bytes"] = size
        if step >= 0:
            record["step"] = step
        agent.record(record)
    except Exception as trouble:
        agent.log("could not record an out-of-memory error", trouble)


def classify(error: BaseException) -> Optional[Tuple[str, Optional[int]]]:
    """The source of an out-of-memory error of the host, and the bytes asked for where it says; None: another one."""
    if isinstance(error, MemoryError):
        return "MemoryError", _asked(text_of(error))
    if isinstance(error, RuntimeError):
        text = text_of(error)
        if "DefaultCPUAllocator" in text or ("can't allocate memory" in text and "alloc" in text):
            return "torch.cpu", _asked(text)
    return None


def _asked(text: str) -> Optional[int]:
    import re

    exact = re.search(r"tried to allocate (\d+) bytes", text)
    if exact:
        return int(exact.group(1))
    rounded = re.search(r"[Uu]nable to allocate ([\d.]+) (bytes|[KMGTPE]iB)", text)
    if rounded:
        return int(float(rounded.group(1)) * _UNITS[rounded.group(2)])
    return None
