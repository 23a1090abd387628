"""Runs in MLflow: figures and curves as metrics, the report as an artifact.

with mlflow.start_run():
    train()
    hightide.mlflow.log()
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import mlflow
from mlflow.entities import Metric
from mlflow.tracking import MlflowClient

from . import _trackers

MOST = 1000  # metrics that MLflow takes at once


def log(run: str = "") -> str:
    """Log a run into MLflow's active run, or into a new one that is then active, as mlflow.log_metric does.

    Args:
        run: as hightide.report takes it; "": the one that records this program, or else its latest.
    Returns:
        The id of our run.
    """
    found = mlflow.active_run() or mlflow.start_run()
    return _trackers.send(Run(found.info.run_id), run)


def active() -> Optional[Run]:
    """MLflow's active run; None: there is none."""
    found = mlflow.active_run()
    return Run(found.info.run_id) if found is not None else None


class Run(_trackers.Tracker):
    """A run of MLflow."""

    name = "mlflow"

    def __init__(self, run: str, client: Any = None) -> None:
        self._id = run
        self._client = client or MlflowClient()

    def id(self) -> str:
        """Its id."""
        return self._id

    def link(self, runs: str) -> None:
        """As a tag."""
        self._client.set_tag(self._id, _trackers.OURS, runs)

    def figures(self, figures: Dict[str, int]) -> None:
        """As metrics of one value."""
        for name, value in figures.items():
            self._client.log_metric(self._id, name, value)

    def curves(self, curves: List[_trackers.Curve], start_ns: int) -> None:
        """As metrics with the times at which they were read; the step is in milliseconds since the run began."""
        metrics = [
            Metric(curve.name, value, (start_ns + at) // 1_000_000, at // 1_000_000)
            for curve in curves
            for at, value in curve.points
        ]
        for begin in range(0, len(metrics), MOST):
            self._client.log_batch(self._id, metrics=metrics[begin : begin + MOST])

    def page(self, path: str) -> None:
        """As an artifact."""
        self._client.log_artifact(self._id, path, "hightide")
