"""Runs in Weights & Biases: figures in the summary, curves as one chart, the report as a page.

    with wandb.init(mode="offline"):
        train()
        hightide.wandb.log()

All of it is one row of history, and it spends no step: steps are the program's own to count.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import wandb

from . import _trackers


def log(run: str = "") -> str:
    """Log a run into the active run of Weights & Biases.

    Args:
        run: as hightide.report takes it; "": the one that records this program, or else its latest.
    Returns:
        The id of our run.
    Raises:
        RuntimeError: no run is active.
    """
    found = active()
    if found is None:
        raise RuntimeError("no run of Weights & Biases is active: call wandb.init() before")
    return _trackers.send(found, run)


def active() -> Optional[Run]:
    """The active run; None: there is none."""
    return Run(wandb.run) if wandb.run is not None else None


class Run(_trackers.Tracker):
    """A run of Weights & Biases."""

    name = "wandb"

    def __init__(self, run: Any) -> None:
        self._run = run

    def id(self) -> str:
        """Its id."""
        return str(self._run.id)

    def link(self, runs: str) -> None:
        """In the configuration, which runs are found by."""
        self._run.config.update({_trackers.OURS: runs}, allow_val_change=True)

    def figures(self, figures: Dict[str, int]) -> None:
        """In the summary."""
        self._run.summary.update(figures)

    def curves(self, curves: List[_trackers.Curve], start_ns: int) -> None:
        """As a chart over the seconds since the run began."""
        if curves:
            chart = wandb.plot.line_series(
                xs=[[at / 1e9 for at, _ in curve.points] for curve in curves],
                ys=[[value for _, value in curve.points] for curve in curves],
                keys=[curve.name for curve in curves],
                title="memory (bytes)",
                xname="seconds",
            )
            self._run.log({"hightide/memory": chart}, commit=False)

    def page(self, path: str) -> None:
        """As a page among the run's media."""
        with open(path, encoding="utf-8") as page:
            self._run.log({"hightide/report": wandb.Html(page.read(), inject=False)}, commit=False)
