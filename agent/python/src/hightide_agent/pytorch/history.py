"""The CUDA allocator's history, which the program may record for itself too: PyTorch has one, with one set of settings.

    the program's _record_memory_history ─▶ noted, and ours goes on with what either wants
    the program's snapshot ◀── the events since it began, as many as it asked for      ours ◀── all

So a program that stops recording does not blind the report. It finds in its own file what it would without us, also
of what it asked for before CUDA started. From 2.14 on PyTorch records pinned host memory where it is asked to. Each
call says of devices and of that whether it is on from here. Both stay on for us; the program is shown its own.
"""

from __future__ import annotations

import os
from time import time_ns
from typing import Any, Callable, List, Tuple

CONTEXTS = ("alloc", "all")  # that have the stack of each allocation, as ours must


# Where the newer arguments stand among those that follow the number of entries.
PINNED, DEVICES = 4, 5


def _knows_pinned(memory: Any) -> bool:
    """Whether this PyTorch can record pinned host memory."""
    told = getattr(memory, "_record_memory_history_impl", None)
    return "record_pinned_host_memory" in getattr(getattr(told, "__code__", None), "co_varnames", ())


class History:
    """Records for us and for the program. Replaces two functions of torch._C that torch.cuda.memory calls."""

    def __init__(self, torch: Any, entries: Callable[[], int], snapshot: Callable[[str], Any]) -> None:
        self.torch = torch
        self.core = torch._C
        self._wanted = entries  # how many events we want
        self._keep = snapshot  # writes what was recorded as a file, for a reason
        self.began = 0  # us of the wall clock: when the program's own began; 0: it records none
        self.most = 0  # events that it asked for
        self.skipped: List[str] = []  # kinds of events that it does not want
        self.devices, self.pinned = True, False  # what the program records
        self._started = False
        self._both: Tuple[Any, ...] = ()  # what records for the program and for us, since the program asked last
        self._ours = False  # we are the caller
        self._record: Callable[..., Any] = self.core._cuda_record_memory_history
        self._read: Callable[..., Any] = self.core._cuda_memorySnapshot

    def watch(self) -> None:
        """See what the program asks for, which may be before CUDA has started; nothing is recorded for us yet."""
        self.core._cuda_record_memory_history = self._asked
        self.core._cuda_memorySnapshot = self._shown

    def start(self) -> None:
        """Record, for as long as the process lives."""
        self._started = True
        if self.began:
            self._record(*self._both)
        else:
            self._begin("all")

    def snapshot(self) -> Any:
        """The whole state and history."""
        self._ours = True
        try:
            return self.torch.cuda.memory._snapshot()
        finally:
            self._ours = False

    @property
    def entries(self) -> int:
        """How many events are kept for us."""
        return self._wanted()

    def _begin(self, enabled: Any) -> None:
        """By PyTorch's own front door, which knows what else its version wants to be told."""
        self._ours = True
        try:
            memory = self.torch.cuda.memory
            more = {"record_pinned_host_memory": True} if enabled and _knows_pinned(memory) else {}
            memory._record_memory_history(enabled, context="alloc", stacks="python", max_entries=self.entries, **more)
        finally:
            self._ours = False

    def _asked(self, enabled: Any = "all", *rest: Any) -> Any:
        """The program asks PyTorch to record, or to stop."""
        if self._ours or enabled not in ("all", "state", None) or len(rest) < 3:
            return self._record(enabled, *rest)
        if enabled is not None:
            self._both = self._wants(enabled, *rest)
            return self._record(*(self._both if self._started else (enabled, *rest)))
        if not self._started or rest[3 + PINNED : 4 + PINNED] == (True,):  # PyTorch refuses to stop so
            answer = self._record(enabled, *rest)
            self.began = 0
            return answer
        return self._stopped()

    def _wants(self, enabled: Any, context: Any, stacks: Any, most: Any, *rest: Any) -> Tuple[Any, ...]:
        """Notes what the program wants; what records that and what we want."""
        more = list(rest)
        again = len(more) > 0 and bool(more[0])
        if again:
            more[0] = False  # what it wants to forget is still ours
        if not self.began or again:
            self.began = time_ns() // 1000
        self.most = most if enabled == "all" else 0
        if len(more) > 3 and isinstance(more[3], (list, tuple)):
            self.skipped, more[3] = list(more[3]), []
        if len(more) > PINNED:
            self.pinned, more[PINNED] = bool(more[PINNED]), True
        if len(more) > DEVICES:
            self.devices, more[DEVICES] = bool(more[DEVICES]), True
        context = context if context in CONTEXTS else "alloc"
        stacks = "all" if stacks == "all" else "python"
        return ("all", context, stacks, max(self.most, self.entries), *more)

    def _stopped(self) -> None:
        """Ours goes on. PyTorch cannot make its ring smaller: where the program's was larger it begins anew, and what
        it held is kept as a file."""
        larger, self.began, self.skipped = self.began and self.most > self.entries, 0, []
        self.devices, self.pinned = True, False
        if larger:
            self._keep("recorded")
            self._begin(None)
        self._begin("all")

    def _shown(self, *wanted: Any) -> Any:
        """A snapshot; of the history the program gets only what is its own."""
        state = self._read(*wanted)
        if os.environ.get("HIGHTIDE_IMAGINE") == "1" and isinstance(state, dict):
            state["hightide_label"] = "imagined"  # the program's file, too, may be read far from its recording
        if self._started and not self._ours and isinstance(state, dict):
            for name, asked in (("device_traces", self.devices), ("host_traces", self.pinned)):
                if name in state:
                    state[name] = self._own(state[name], asked)
            if not self.pinned and "host_segments" in state:
                state["host_segments"] = []
        return state

    def _own(self, traces: Any, wanted: bool) -> Any:
        if traces and isinstance(traces[0], dict):  # of the host: one trace
            return self._since(traces) if wanted else []
        return [self._since(trace) if wanted else [] for trace in traces]

    def _since(self, events: List[Any]) -> List[Any]:
        """The program's own events of one trace."""
        if not self.began or not self.most:
            return []
        skipped = set(self.skipped)
        own = [e for e in events if e.get("time_us", self.began) >= self.began and e.get("action") not in skipped]
        return own[-self.most :] if len(own) > self.most else own
