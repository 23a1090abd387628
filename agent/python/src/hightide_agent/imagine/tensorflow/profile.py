"""TensorFlow's own profile of its allocators: each block with the operation that asked for it, until the peak is known.

    a context starts ─▶ a session of tf.profiler ─▶ its file, with the lines of operations (lines.py) ─▶ the engine
    the peak rises later, unprofiled ─▶ another one, over the next steps

No session runs beside one of the program's own: ours ends first. The file that a session writes is XProf's.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
import tempfile
from time import process_time
from typing import Any

from ... import snapshots
from ...agent import Agent
from .lines import Lines

PROFILER = "tensorflow.python.profiler.internal._pywrap_profiler"
OPTIONS = {"host_tracer_level": 2, "python_tracer_level": 0, "device_tracer_level": 0}
MOST = 256 << 20  # bytes of a file that is kept
SESSIONS = 4
SECONDS = 20.0  # of the processor, after which a session ends: each operation is an event that is kept
STEPS = 3  # a session ends with
QUIET = 2  # steps in which the peak has not risen before a session ends


class Profile:
    """The sessions of this process."""

    def __init__(self, agent: Agent, lines: Lines) -> None:
        self.agent, self.lines = agent, lines
        self._session: Any = None
        self._folder = ""
        self._number = 0
        self._began = 0.0
        self._until = STEPS  # the first step after which this session may end
        self._closed = False  # no more of them
        lines.asked = self._looked

    def install(self, context: Any) -> None:
        """Begin with the context that the program starts; `context`: the module."""
        if not os.environ.get("HIGHTIDE_OUT"):
            return
        __import__(PROFILER)
        self._give_way(sys.modules[PROFILER].ProfilerSession)
        original = context.Context.ensure_initialized

        @functools.wraps(original)
        def ensure_initialized(its: Any) -> None:
            new = not its._initialized
            original(its)
            if new and its._initialized:
                context.Context.ensure_initialized = original
                self.begin(0)

        context.Context.ensure_initialized = ensure_initialized

    def _give_way(self, kind: Any) -> None:
        """To a session of the program's own, which would fail beside ours."""
        original, self._start = kind.start, kind.start

        def start(session: Any, *args: Any, **kwargs: Any) -> Any:
            self.end()
            self._closed = True
            return original(session, *args, **kwargs)

        kind.start = start

    def begin(self, step: int) -> None:
        """Profile from here on, until some steps after `step`."""
        if self._session is not None or self._closed or self._number >= SESSIONS:
            return
        try:
            self._folder = tempfile.mkdtemp(prefix="profile-", dir=os.environ["HIGHTIDE_OUT"])
            session = sys.modules[PROFILER].ProfilerSession()
            self._start(session, self._folder, dict(OPTIONS))
            self._session, self._until, self._began = session, step + STEPS, process_time()
            self._number += 1
            self.lines.begin()
        except Exception as error:
            self._closed = True
            self.agent.log("could not profile TensorFlow's allocators", error)

    def step_ended(self, step: int, rose: int) -> None:
        """End a session that has seen the peak; begin one where it rose unseen. `rose`: the step in which it did."""
        if self._session is None:
            if rose == step:
                self.begin(step)
        elif (step >= self._until and step - rose >= QUIET) or self._spent():
            self.end()

    def _spent(self) -> bool:
        return process_time() - self._began > SECONDS

    def _looked(self) -> None:
        """Now and then, while operations run: a program may have no steps."""
        if self._spent():
            self.end()

    def end(self) -> None:
        """Write what was profiled; nothing while no session runs."""
        session, self._session = self._session, None
        if session is None:
            return
        try:
            self.lines.end()
            session.export_to_tb()
            for folder, _, names in os.walk(self._folder):
                for name in names:
                    if name.endswith(".xplane.pb"):
                        self._write(os.path.join(folder, name))
        except Exception as error:
            self.agent.log("could not write a profile of TensorFlow's allocators", error)
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _write(self, path: str) -> None:
        size = os.path.getsize(path)
        if size > MOST:
            self.agent.log("a profile of %d bytes is not kept" % size)
            return
        with open(path, "rb") as file:
            data = file.read()
        reason = "peak" if self._number == 1 else "peak-%d" % self._number
        snapshots.write(self.agent, reason, ".xplane.pb", "xspace", lambda file: file.write(data + self.lines.plane()))

    def forget(self) -> None:
        """In a process that was forked, which has none of the profiler's threads."""
        self._session, self._closed = None, True
