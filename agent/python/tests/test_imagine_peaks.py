"""When an imagined training is ended: for a goal that was reached, and though its peak does not rest."""

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


def steady_after(monkeypatch: pytest.MonkeyPatch, folder: Path, rises: dict[int, int], reached: int) -> int:
    """The step after which the peak is believed, where it is `rises[step]` from that step on."""
    monkeypatch.setenv("HIGHTIDE_IMAGINE_STEPS", "auto")
    monkeypatch.setattr(peaks, "process_time", lambda: 0.0)
    found, allocated = peaks.Peaks(agent.Agent(str(folder))), 0
    for step in range(1, 10**4):
        allocated = rises.get(step, allocated)
        found.saw(0, (allocated, None), 0, peaks.NONE, step - 1)
        found.step_ended()
        missing = step < reached
        if found.steady(step) and not missing:
            return step
        assert not found.over(step, missing), step
    raise AssertionError("never")


def test_a_peak_that_rose_for_the_goal_had_not_rested_by_chance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rested = peaks.STEADY - 1
    assert steady_after(monkeypatch, tmp_path, {1: 10, 151: 20}, 151) == 151 + rested
    assert steady_after(monkeypatch, tmp_path, {1: 10, 101: 20}, 0) == peaks.ENOUGH  # nobody waited for step 101
    assert steady_after(monkeypatch, tmp_path, {1: 10, 60: 15, 151: 20}, 151) > 151 + rested  # it rises without a goal
    assert steady_after(monkeypatch, tmp_path, {1: 10, 151: 20, 153: 30}, 151) == 153 + 3  # half as long as before


def test_a_training_whose_batches_still_have_new_shapes_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIGHTIDE_IMAGINE_STEPS", "auto")
    spent = [0.0]
    monkeypatch.setattr(peaks, "process_time", lambda: spent[0])
    found = peaks.Peaks(agent.Agent(str(tmp_path)))

    def step(number: int, shapes: int, seconds: float) -> bool:
        spent[0] += seconds
        found.saw(0, (10, None), 0, peaks.NONE, number - 1)
        found.step_ended()
        found.shaped(number, shapes)
        return found.steady(number)

    assert not any(step(number, number - 1, 9.0) for number in range(1, 6))  # each is compiled anew
    assert found.open_end(5, False) == {
        "type": "not_reached",
        "what": "steady peak",
        "text": "step 5 of 5 had a new shape: a longer one may take more",
    }
    assert not step(6, 4, 0.1)
    assert step(7, 4, 0.1) and found.open_end(7, False) is None
    assert not step(8, 5, 1.0)
    assert step(9, 6, 60.0)  # it has no end
