"""When an imagined training is ended though its peak does not rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import SOURCE  # noqa: F401  (puts the agent on the path)
from hightide_agent import agent
from hightide_agent.imagine import peaks


def ended(monkeypatch: pytest.MonkeyPatch, folder: Path, steps: str, reached: int) -> int:
    """The step at which a training is ended whose peak never rests, and which reaches a goal in that step."""
    monkeypatch.setenv("HIGHTIDE_IMAGINE_STEPS", steps)
    found = peaks.Peaks(agent.Agent(str(folder)))
    return next(step for step in range(1, 10**6) if found.over(step, step < reached))


def test_what_is_done_for_a_goal_takes_its_time_however_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most = peaks.MAX_STEPS
    assert ended(monkeypatch, tmp_path, "auto", 0) == most
    assert ended(monkeypatch, tmp_path, "auto", 11) == most + 10
    assert ended(monkeypatch, tmp_path, "auto", 5 * most) == 6 * most - 1
    assert ended(monkeypatch, tmp_path, "auto", 10**6) == peaks.FAR_STEPS
    assert ended(monkeypatch, tmp_path, "40", 10**6) == 40
