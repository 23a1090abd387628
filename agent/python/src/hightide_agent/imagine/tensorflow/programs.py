"""Programs that XLA compiles for TensorFlow (`jit_compile=True`, Keras's fit), with the assignment of their buffers.

    XLA_FLAGS, before XLA first compiles ─▶ *after_optimizations.hlo.pb ─▶ the largest, with the lines of operations

TensorFlow's allocator sees what a program's temporaries take as one block. The engine finds the block by its size, and
tells what is in it. Where the program has XLA dump on its own, nothing is written.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from typing import Any, List

from ... import snapshots
from ...agent import Agent
from .. import wire
from ..xla.dumps import ENDING
from .lines import Lines

FIELD = 4001  # of a program that is written: a plane with the lines of operations, which other readers pass over
PROGRAMS = 8  # that are written at most
MOST = 64 << 20  # bytes of one that is written


class Programs:
    """Those of this process."""

    def __init__(self, agent: Agent, lines: Lines) -> None:
        self.agent, self.lines = agent, lines
        self.folder = ""

    def install(self) -> None:
        """Have XLA write them."""
        out, flags = os.environ.get("HIGHTIDE_OUT"), os.environ.get("XLA_FLAGS", "")
        if not out or "--xla_dump" in flags or (flags and not flags.lstrip().startswith("--")):  # it names a file
            return
        self.folder = tempfile.mkdtemp(prefix="programs-", dir=out)
        os.environ["XLA_FLAGS"] = ("%s --xla_dump_to=%s --xla_dump_hlo_as_proto" % (flags, self.folder)).strip()
        atexit.register(self._delete, os.getpid())

    def write(self) -> None:
        """Write the largest as files of the run; nothing where XLA compiled none."""
        paths: List[str] = []
        for name in os.listdir(self.folder) if self.folder else ():
            path = os.path.join(self.folder, name)
            if name.endswith(ENDING) and os.path.getsize(path) <= MOST:
                paths.append(path)
        if not paths:
            return
        lines = wire.message(FIELD, self.lines.plane())
        for number, path in enumerate(sorted(paths, key=os.path.getsize, reverse=True)[:PROGRAMS]):
            with open(path, "rb") as file:
                data = file.read() + lines
            reason = "peak" if number == 0 else "peak-%d" % (number + 1)
            snapshots.write(self.agent, reason, ".hlo.pb", "hlo", _writes(data))

    def _delete(self, pid: int) -> None:
        if os.getpid() == pid:
            shutil.rmtree(self.folder, ignore_errors=True)


def _writes(data: bytes) -> Any:
    return lambda file: file.write(data)
