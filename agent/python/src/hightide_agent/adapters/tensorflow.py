"""TensorFlow: whether its tensors on the host come from an arena of its own.

With oneDNN, which is on by itself on some processors, they do: malloc sees only the arena grow, on whatever line asked
for more than it had.
"""

from __future__ import annotations

import sys
from typing import Any, Callable

from ..training import Training

Watch = Callable[[str, Callable[[Any], None]], None]


def install(training: Training, tensorflow: Any, watch: Watch) -> None:
    """Ask the TensorFlow that has just been imported."""
    port = sys.modules.get("tensorflow.python.util._pywrap_util_port")
    if port is not None and port.IsMklEnabled():
        training.agent.fact("tensorflow_arena", "oneDNN")
