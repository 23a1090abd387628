"""Recorded runs in experiment trackers: what is logged, and by which name each side knows the other's run.

    a report ─▶ figures, curves, the page ─▶ a Tracker: mlflow.py, wandb.py, tensorboard.py
    an active run of theirs ─▶ its id is a tag of ours, ours is one of theirs

A tracker is asked only where the program uses it: nothing here imports one that is not imported.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from importlib import import_module
from typing import Dict, Iterator, List, NamedTuple, Tuple

from . import _engine, _session
from ._runs import Report, report

OURS = "hightide.run"  # what trackers call our run's id


class Curve(NamedTuple):
    """A quantity over time."""

    name: str
    points: List[Tuple[int, int]]
    """nanoseconds since the run began, and bytes"""


class Tracker:
    """One run of an experiment tracker. The files of trackers have one of each."""

    name = ""
    """as in the tag <name>.run of our runs"""

    def id(self) -> str:
        """Its own id."""
        raise NotImplementedError

    def link(self, runs: str) -> None:
        """Keep our run's id in it, or the ids of several with a space between."""
        raise NotImplementedError

    def figures(self, figures: Dict[str, int]) -> None:
        """Log figures of the whole run."""
        raise NotImplementedError

    def curves(self, curves: List[Curve], start_ns: int) -> None:
        """Log curves of a run that began so many nanoseconds after 1970."""
        raise NotImplementedError

    def page(self, path: str) -> None:
        """Keep the report, one HTML file."""
        raise NotImplementedError


def send(tracker: Tracker, run: str) -> str:
    """Log a run, "" for this program's or else the latest, and link both; its id."""
    found = report(run)
    link_with(found.id, tracker)
    tracker.figures(dict(_figures(found)))
    tracker.curves(list(_curves(found)), int(found.data["run"]["start_wall_ns"]))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"hightide-{found.id}.html")
        with open(path, "w", encoding="utf-8") as page:
            page.write(found.html)
        tracker.page(path)
    return found.id


def link(run: str) -> None:
    """Link our run with those that MLflow and Weights & Biases have active in this program."""
    for name in ("mlflow", "wandb"):
        if name in sys.modules:
            tracker = import_module("." + name, __package__).active()
            if tracker is not None:
                link_with(run, tracker)


def link_with(run: str, tracker: Tracker) -> None:
    """Link our run with one of a tracker's, once. One of theirs may be several of ours: a training, then a test."""
    ours = _linked.setdefault((tracker.name, tracker.id()), [])
    if run not in ours:
        ours.append(run)
        tracker.link(" ".join(ours))
        _tell(run, tracker)


_linked: Dict[Tuple[str, str], List[str]] = {}


def _tell(run: str, tracker: Tracker) -> None:
    """Tag our run: through the agent while it is recorded, else in its recording."""
    tag = {f"{tracker.name}.run": tracker.id()}
    here = _session.here()
    if here.get("run") == run:
        _engine.agent().name_run("", tag)
    else:
        _engine.ask("tag", run, *(f"{key}={value}" for key, value in tag.items()))


def _figures(found: Report) -> Iterator[Tuple[str, int]]:
    headline = found.data["headline"]
    for key, value in headline["peak"].items():
        if key.endswith("_bytes") and not key.endswith("_error_bytes"):
            yield f"hightide/peak/{key}", value
    for key in ("growth_bytes_per_step", "duration_ns"):
        if headline.get(key) is not None:
            yield f"hightide/{key}", headline[key]
    if headline["steps"]:
        yield "hightide/steps", headline["steps"]
    if found.findings or not headline.get("not_looked_for"):  # what was not looked for is not 0
        yield "hightide/findings", len(found.findings)


def _curves(found: Report) -> Iterator[Curve]:
    """Memory over time: of the whole run, of devices, and of allocators; not of each process."""
    for series in found.data["series"]:
        whole = "process" not in series and not series["name"].startswith("system.")
        if (whole or series.get("framework")) and series.get("x_unit") == "ns" and series.get("unit") == "bytes":
            of = series.get("of")
            yield Curve(
                key(f"hightide/{series['name']}" + (f"/{of}" if of else "")), list(zip(series["x"], series["y"]))
            )


def key(name: str) -> str:
    """A name that every tracker takes: letters, digits, and these few signs."""
    return re.sub(r"[^\w./ -]", "_", name)
