"""What the SDK asks of the agent of this process. Nothing here is for a program that does not import hightide.

hightide.span ─▶ spans ─▶ spans.py          hightide.step ─▶ step ─▶ steps.py
hightide.alert ─▶ alerts ─▶ alerts.py       hightide.snapshot, init ─▶ records of the channel
"""

from __future__ import annotations

from _thread import RLock
from time import sleep

from . import imports, resident
from . import start as started
from .channel import monotonic_ns

TYPE_CHECKING = False  # for type checkers only: importing typing takes longer than all the rest of the start
if TYPE_CHECKING:
    from typing import Any, Optional

    from .agent import Agent
    from .alerts import Alerts
    from .spans import Spans
    from .training import Training

_lock = RLock()
_spans: Optional[Spans] = None
_alerts: Optional[Alerts] = None


class _Mark:
    """What leads the steps where the program marks them itself."""

    __slots__ = ("__weakref__",)


_mark = _Mark()
_snapshots = 0


def agent() -> Optional[Agent]:
    """The agent, if this process is being recorded."""
    found = started.agent
    return found if found is not None and found.ready() is not None else None


def spans() -> Optional[Spans]:
    """The process's named spans; None where it is not recorded."""
    global _spans
    found = agent()
    if found is None:
        return None
    with _lock:  # two would give the same numbers to their stays
        if _spans is None or _spans.agent is not found:
            from .spans import Spans

            finder = imports.finder
            _spans = Spans(found, (lambda: finder._training) if finder is not None else training)
    return _spans


def training() -> Optional[Training]:
    """What frameworks tell; None where none is used."""
    return imports.finder._training if imports.finder is not None else None


def step() -> bool:
    """A step of the program's own ends here; False where an optimizer's steps are the steps."""
    if agent() is None or imports.finder is None:
        return True
    return imports.finder.training().steps.marked(_mark)


def steps() -> int:
    """Steps completed so far."""
    found = training()
    return found.tracker.steps_now() if found is not None else 0


def alerts() -> Optional[Alerts]:
    """The alerts that this process asks for; None where it is not recorded."""
    global _alerts
    found = agent()
    if found is None:
        return None
    with _lock:
        if _alerts is None or _alerts.agent is not found:
            from .alerts import Alerts

            _alerts = Alerts(found)
    return _alerts


def name_run(name: str, tags: dict[str, str]) -> None:
    """Give the run a name and tags, where it has none from its command line."""
    found = agent()
    if found is not None and (name or tags):
        found.record({"type": "run", "name": name, "tags": tags})


def held() -> tuple[int, int, int]:
    """Bytes resident, allocated and reserved on the device now; -1: not known."""
    found = training()
    device = found.tracker.device if found is not None else None
    allocated, reserved = device() if device is not None else (-1, -1)
    return resident.rss(), allocated, reserved


def snapshot(label: str) -> int:
    """Mark this moment, have the heap read, and have frameworks write what their allocators hold: how many did."""
    global _snapshots
    found = agent()
    if found is None:
        return 0
    _snapshots += 1
    found.record({"type": "mark", "text": label or "snapshot %d" % _snapshots})
    frameworks = training()
    if frameworks is None:
        return 0
    return sum(write("asked-%d" % _snapshots) is not None for write in list(frameworks.snapshots.values()))


def let_go() -> None:
    """Wait until no scan of ours goes on: what one reaches lives until its end, also what the program lets go of."""
    from .watcher import hold_scans

    hold_scans(0)


def rescued(record: dict[str, Any]) -> None:
    """A step that ran out of memory was done again in parts."""
    found = agent()
    if found is not None:
        found.record({**record, "step": steps()})


def aside(pid: int) -> None:
    """A process that we started is not part of the run."""
    found = agent()
    if found is not None:
        found.record({"type": "aside", "id": pid})


def cell(file: str, name: str, text: str) -> None:
    """A file of a kernel is a cell of its notebook; `text`: its source."""
    found = agent()
    if found is not None:
        found.record({"type": "cell", "file": file, "name": name, "text": text[:MOST_SOURCE]})


MOST_SOURCE = 8000  # characters of a cell: a message has to fit into the ring


def kept(patience: float) -> bool:
    """Wait until all that was told so far is in the recording; False after `patience` seconds."""
    if _spans is not None:
        _spans.flush()
    found = agent()
    until = monotonic_ns() + int(patience * 1e9)
    while found is not None and found.channel is not None and not found.channel.kept():
        if monotonic_ns() > until:
            return False
        sleep(0.02)
    return found is not None
