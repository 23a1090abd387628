"""RMM, RAPIDS' memory manager. Its wheels have CUDA's runtime inside a library that tells no names."""

from __future__ import annotations

import os
from typing import Any, Callable

from ..training import Training


def install(training: Training, rmm: Any, watch: Callable[[str, Callable[[Any], None]], None]) -> None:
    """Observe this process's use of the RMM that has just been imported."""
    if os.environ.get("HIGHTIDE_IMAGINE") == "1":
        from ..imagine import inside

        for path in inside.loaded("librmm.so"):
            inside.lead_out(training.agent, "RMM", path)
