"""When tensors are created and freed: single ones that the program names, and all of a device's by line.

track_tensor ─▶ a weak reference                      ─▶ events: created, freed, by name and line
the allocator's history, which the engine keeps ─▶ by_line(): how many each line created and freed, and their bytes
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import weakref
from time import time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .. import _engine, _moments, _session

MOST_EVENTS = 10_000


class TensorEvent(NamedTuple):
    """A tensor that the program named was created (or first tracked), or freed."""

    timestamp: float
    """seconds since 1970"""
    event: str
    """created or freed"""
    name: str
    bytes: int
    device: str
    shape: Tuple[int, ...]
    line: str
    """where it was tracked, as train.py:12"""

    def __str__(self) -> str:
        return f"Tensor {self.event}: {self.name}, {self.bytes / 2**20:.3g} MiB on {self.device}, {self.line}"


class LineLife(NamedTuple):
    """What one line of the program created on the devices, in the allocator's history."""

    line: str
    function: str
    created: int
    created_bytes: int
    freed: int
    freed_bytes: int

    @property
    def alive_bytes(self) -> int:
        """Bytes that are left."""
        return self.created_bytes - self.freed_bytes


class TensorTracker:
    """Tensors that the program names, each with what became of it."""

    def __init__(self) -> None:
        self.events: List[TensorEvent] = []
        self._alive: Dict[int, TensorEvent] = {}
        self._lock = threading.RLock()  # a tensor may be freed while its tracker is at work

    def track_tensor(self, tensor: Any, name: str = "tensor", above: int = 1) -> None:
        """Follow a tensor or array until it is freed. above: how many calls up its line is.

        Raises:
            TypeError: it is none, or is not told of when it is freed.
        """
        count = _bytes(tensor)
        if count is None:
            raise TypeError(f"{type(tensor).__name__} is not a tensor: it has no number of bytes")
        frame = sys._getframe(above)
        where = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
        shape = tuple(int(n) if n is not None else -1 for n in getattr(tensor, "shape", ()) or ())
        event = TensorEvent(time(), "created", name, count, str(getattr(tensor, "device", "") or "cpu"), shape, where)
        number = id(event)
        try:
            end = weakref.finalize(tensor, self._freed, number)
        except TypeError:
            raise TypeError(
                f"{type(tensor).__name__} does not tell when it is freed: it has no weak references"
            ) from None
        end.atexit = False
        with self._lock:
            self._alive[number] = event
            self._note(event)

    def _freed(self, number: int) -> None:
        with self._lock:
            event = self._alive.pop(number, None)
            if event is not None:
                self._note(event._replace(timestamp=time(), event="freed"))

    def _note(self, event: TensorEvent) -> None:
        if len(self.events) == MOST_EVENTS:
            _engine.say_once(f"events of tensors are kept up to {MOST_EVENTS}: later ones are not")
        if len(self.events) < MOST_EVENTS:
            self.events.append(event)

    @property
    def alive(self) -> List[TensorEvent]:
        """Those that were tracked and are not freed."""
        with self._lock:
            return list(self._alive.values())

    def get_active_tensors(self) -> Dict[str, int]:
        """Bytes of those that are not freed, by name."""
        held: Dict[str, int] = {}
        for event in self.alive:
            held[event.name] = held.get(event.name, 0) + event.bytes
        return held

    def get_tensor_lifecycle(self) -> List[TensorEvent]:
        """All events so far, by time."""
        return list(self.events)

    def by_line(self) -> List[LineLife]:
        """All tensors on devices, by the line that created them, most bytes first: from the allocator's history.

        Without a GPU, and where no history is kept, the list is empty and one line says why.
        """
        return by_line()


def by_line() -> List[LineLife]:
    """See TensorTracker.by_line."""
    if not _session.recorded() or not _moments.snapshot("life of tensors").files:
        _engine.say_once(
            "no allocator told of tensors: their life by line is known where PyTorch uses a GPU and is recorded"
        )
        return []
    here = _session.here()
    _session.wait_until_kept()
    try:
        with tempfile.TemporaryDirectory(prefix="hightide-") as folder:
            file = os.path.join(folder, "snapshot.pickle")  # of a run, events would be the run's own
            _engine.ask("export", here["run"], "--torch-pickle", file, data=here["data"])
            table = _engine.ask("export", file, "--csv", "--table", "events")
    except (_engine.Failed, OSError) as error:
        _engine.say(f"the allocator's history cannot be asked for: {error}")
        return []
    found: Dict[Tuple[str, str], List[int]] = {}
    alive: Dict[Tuple[str, str], Tuple[str, str]] = {}
    for row in _rows(table):
        block = row["device"], row["address"]
        if row["action"] == "alloc":
            alive[block] = _place(row)
        elif row["action"] != "free_completed":
            continue
        place = alive.get(block)
        if place is None:
            continue  # created before the history began
        sums = found.setdefault(place, [0, 0, 0, 0])
        at = 0 if row["action"] == "alloc" else 2
        sums[at] += 1
        sums[at + 1] += int(row["size_bytes"])
        if at:
            del alive[block]
    lives = [LineLife(line, function, *sums) for (line, function), sums in found.items()]
    return sorted(lives, key=lambda life: -life.created_bytes)


def _rows(table: str) -> Iterator[Dict[str, str]]:
    import csv

    return csv.DictReader(table.splitlines())


def _place(row: Dict[str, str]) -> Tuple[str, str]:
    file = os.path.basename(row["file"] or "") or "(no line is known)"
    return (f"{file}:{row['line']}" if row["line"] else file), row["function"] or ""


def _bytes(tensor: Any) -> Optional[int]:
    """Of a tensor of PyTorch, TensorFlow, JAX, or an array."""
    count = getattr(tensor, "nbytes", None)
    if isinstance(count, int):
        return count
    size = getattr(getattr(tensor, "dtype", None), "size", None)  # of TensorFlow
    shape = getattr(tensor, "shape", None)
    if isinstance(size, int) and shape is not None:
        for n in shape:
            size *= int(n or 0)
        return size
    return None
