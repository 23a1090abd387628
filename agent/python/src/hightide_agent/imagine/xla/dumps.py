"""Programs that XLA compiles for the user's functions, with the assignment of their buffers, as XLA writes them.

    compile options of a user's function ─▶ xla_dump_to ─▶ *after_optimizations.hlo.pb, the rest is deleted

The engine reads such a file (internal/format/profiler/hlo.go). Where the program has XLA dump on its own, or a program
comes from JAX's persistent cache, there is none.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import weakref
from typing import Any, Optional

from ...agent import Agent

ENDING = "_gpu_after_optimizations.hlo.pb"
MOST = 256 << 20  # bytes of a program that is kept


class Dumps:
    """Those of this process."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.folder: Optional[str] = None
        self.of: Any = weakref.WeakKeyDictionary()  # the file of an executable
        self._compiling = False

    def install(self, pxla: Any) -> None:
        """Have XLA write what is compiled between `begin` and `end`."""
        out = os.environ.get("HIGHTIDE_OUT")
        if not out:
            return
        original = pxla.create_compile_options
        self.folder = tempfile.mkdtemp(prefix="programs-", dir=out)
        atexit.register(self._delete, os.getpid())

        def options(*args: Any, **kwargs: Any) -> Any:
            made = original(*args, **kwargs)
            if self._compiling:
                debug = made.executable_build_options.debug_options
                if not debug.xla_dump_to:
                    debug.xla_dump_to, debug.xla_dump_hlo_as_proto = self.folder, True
            return made

        pxla.create_compile_options = options

    def begin(self) -> None:
        """A function of the user's is about to be compiled."""
        self._compiling = self.folder is not None

    def end(self, executable: Any) -> None:
        """It was, into this; None: it failed."""
        if not self._compiling or self.folder is None:
            return
        self._compiling = False
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
            elif name.endswith(ENDING) and executable is not None and os.path.getsize(path) <= MOST:
                kept = os.path.join(self.folder, "%d.kept" % len(self.of))
                os.rename(path, kept)
                self.of[executable] = kept
            elif not name.endswith(".kept"):
                os.unlink(path)

    def _delete(self, pid: int) -> None:
        if os.getpid() == pid and self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
