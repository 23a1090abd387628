"""What the recording says, in the forms that trackers, analyses and pictures need."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .. import _engine, _session
from .._runs import Report, report, rows
from ._pictures import Curve

CURVES = (
    ("allocated on the device", "allocator.allocated"), ("reserved on the device", "allocator.reserved"),
    ("device in use", "device.used"), ("PSS", "tree.pss"), ("RSS", "tree.rss"),
    ("live heap", "heap.live"),
)  # fmt: skip


class Bar(NamedTuple):
    """A stay in a named part of the program; seconds since the run began."""

    name: str
    start: float
    end: float


class Found:
    """A report, and what is asked of it here."""

    def __init__(self, data: Dict[str, Any], page: Optional[Report] = None) -> None:
        self.data, self.page = data, page

    @property
    def id(self) -> str:
        """Of the run; of a file its name."""
        return str(self.data["run"].get("id") or self.data["run"].get("name") or "")

    def seconds(self, mono_ns: int) -> float:
        """Of a moment of the monotonic clock, since the run began."""
        return (mono_ns - int(self.data["run"]["start_mono_ns"])) / 1e9

    def curves(self, start: Optional[float] = None, end: Optional[float] = None) -> List[Curve]:
        """Bytes over seconds, what profiles are of first; between two times."""
        found: Dict[str, Curve] = {}
        for title, name in CURVES:
            for series in self.data["series"]:
                if series["name"] != name or series.get("x_unit") != "ns" or title in found:
                    continue
                every = [(x / 1e9, float(y)) for x, y in zip(series["x"], series["y"])]
                before = [y for x, y in every if start is not None and x < start][-1:]
                points = [p for p in every if (start is None or p[0] >= start) and (end is None or p[0] <= end)]
                points = [(start or 0.0, y) for y in before] + points
                if points:
                    found[title] = Curve(title, points)
        if "PSS" in found:
            found.pop("RSS", None)
        return list(found.values())

    def bars(self) -> List[Bar]:
        """Stays in parts that the program named."""
        return [
            Bar(b["name"], b["start_ns"] / 1e9, b["end_ns"] / 1e9)
            for b in self.data["phases"]
            if b["phase"] == "user" and b.get("name")
        ]

    def rows(self, table: str) -> List[Dict[str, Any]]:
        """Of a table."""
        return rows(self.data, table)

    def alerts(self) -> List[Tuple[float, str, Optional[int]]]:
        """When a limit was passed, which, and the bytes then."""
        return [(m["time_ns"] / 1e9, m["text"], m.get("bytes")) for m in self.data["marks"] if m["kind"] == "alert"]

    def findings(self, *kinds: str) -> List[Dict[str, Any]]:
        """Of some kinds, worst first; without kinds all."""
        return [f for f in self.data["findings"] if not kinds or f["kind"] in kinds]


def ask(about: Any = None) -> Optional[Found]:
    """The report of what is given: a run's id, a file, events of a tracker, or what this program's profilers made.

    Of the latter, and of nothing, the report of this program's run. None, and one line: there is none.
    """
    run = (
        about if isinstance(about, str) else about.get("run") if isinstance(about, dict) else getattr(about, "run", "")
    )
    try:
        if isinstance(about, (str, os.PathLike)) and os.path.exists(about):
            return Found(_engine.ask_json("analyze", os.fspath(about)))
        if _are_events(about):
            return _of_events(about)
        if not run and not _session.recorded() and not _session.latest:
            _engine.say_once("there is no recording to ask: make a profiler or call hightide.init() first")
            return None
        found = report(run if isinstance(run, str) else "")
    except (_engine.Failed, OSError) as error:
        _engine.say(f"the recording cannot be asked: {error}")
        return None
    return Found(found.data, found)


def _are_events(about: Any) -> bool:
    if not isinstance(about, (list, tuple)) or not about:
        return False
    first = about[0]
    return (isinstance(first, dict) or hasattr(first, "to_dict")) and bool(
        {"timestamp", "timestamp_ns"} & set(_as_dict(first))
    )


def _as_dict(event: Any) -> Dict[str, Any]:
    found: Dict[str, Any] = event if isinstance(event, dict) else event.to_dict()
    return found


def _of_events(events: Any) -> Found:
    """Have the engine analyse events as if they stood in a file."""
    with tempfile.TemporaryDirectory(prefix="hightide-") as folder:
        path = os.path.join(folder, "events.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump([_as_dict(event) for event in events], file, default=str)
        return Found(_engine.ask_json("analyze", path))
