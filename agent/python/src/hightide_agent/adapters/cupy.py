"""CuPy: its errors for lack of device memory, which are MemoryErrors.

What is allocated by line is told of imaginary GPUs alone: CuPy's hook costs as much as a small array does.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any, Callable, Optional

from .. import oom
from ..places import text_of
from ..training import Training

Watch = Callable[[str, Callable[[Any], None]], None]


def install(training: Training, cupy: Any, watch: Watch) -> None:
    """Observe this process's use of the CuPy that has just been imported."""
    training.out_of_memory(_out_of_memory)
    if os.environ.get("HIGHTIDE_IMAGINE") == "1":
        from ..imagine import cupy as imagined

        imagined.install(training, cupy, watch)


def _out_of_memory(error: BaseException) -> Optional[oom.Shortage]:
    """The pool's own error, and the runtime's of what does not come from the pool."""
    kind, text = type(error), text_of(error)
    if kind.__module__ == "cupy.cuda.memory" and kind.__name__ == "OutOfMemoryError":
        asked = re.match(r"Out of memory allocating ([\d,]+) bytes", text)
        return "CuPy", _device(), int(asked.group(1).replace(",", "")) if asked else None
    if kind.__name__ == "CUDARuntimeError" and text.startswith("cudaErrorMemoryAllocation"):
        return "CuPy", _device(), None
    return None


def _device() -> str:
    try:
        return "cuda:%d" % sys.modules["cupy_backends.cuda.api.runtime"].getDevice()
    except Exception:
        return "cuda:0"
