"""Libraries of CUDA that TensorFlow wants before it registers a GPU, where its wheel does not look where pip puts them.

TensorFlow registers no GPU at all if one is missing. The wheel of 2.21 does not look for cuSOLVER in the folder of
nvidia-cusolver-cu12, as that of 2.20 does. Opened here by its path it is found. A condition of the verdict says so, as
a program on a real GPU would need LD_LIBRARY_PATH.
"""

from __future__ import annotations

import ctypes
import glob
import mmap
import os
from typing import Any, List

from ...agent import Agent

NEEDED = ("cuda_runtime", "cublas", "cufft", "cusolver", "cusparse", "cudnn")  # folders of NVIDIA's packages


def install(agent: Agent, tensorflow: Any) -> None:
    """Open those that TensorFlow would not find."""
    package = os.path.dirname(tensorflow.__file__)
    opened: List[str] = []
    for name in _not_looked_for(package):
        for path in sorted(
            glob.glob(os.path.join(os.path.dirname(package), "nvidia", name, "lib", "lib%s.so.*" % name))
        ):
            ctypes.CDLL(path)
            opened.append("nvidia/%s/lib" % name)
    if opened:
        text = "found for TensorFlow, whose wheel does not look there: a real GPU needs LD_LIBRARY_PATH"
        agent.record({"type": "condition", "name": ", ".join(opened), "value": text})


def _not_looked_for(package: str) -> List[str]:
    """Of the folders those that are not among the ones where TensorFlow's own library looks."""
    library = os.path.join(package, "libtensorflow_framework.so.2")
    if not os.path.exists(library):
        return []
    with open(library, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return [name for name in NEEDED if data.find(b"/nvidia/%s/lib" % name.encode()) < 0]
