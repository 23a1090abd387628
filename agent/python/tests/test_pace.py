"""How many steps are recorded in full: as few as the time that the program has a processor affords."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conftest import SOURCE  # noqa: F401  (puts the agent on the path)
from hightide_agent import agent, tracker
from hightide_agent.channel import _WAITING, Channel

CALL_NS = 1000  # that go by between two looks at the clock
STEP_NS = 5_000_000


def recorded_every(folder: Path, monkeypatch: pytest.MonkeyPatch, waiting: int) -> int:
    """One in how many steps of 5 ms is recorded in full, where so much of the time is waited for a processor."""
    now = [10**9]

    def clock() -> int:
        now[0] += CALL_NS
        return now[0]

    monkeypatch.setattr(tracker, "monotonic_ns", clock)
    os.makedirs(folder)
    observed = agent.Agent(str(folder))
    observed.open()
    channel = observed.channel
    assert isinstance(channel, Channel)
    channel.words[_WAITING] = waiting
    followed = tracker.Tracker(observed)
    for _ in range(600):
        now[0] += STEP_NS
        if followed.enter(tracker.FORWARD):
            followed.leave(tracker.FORWARD)
        followed.step_ended()
    observed.bye()
    return followed.every


def test_a_program_that_waits_for_a_processor_pays_no_larger_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = recorded_every(tmp_path / "alone", monkeypatch, 0)
    quarter = recorded_every(tmp_path / "quarter", monkeypatch, 65536 * 3 // 4)
    assert 1 < alone < 60 and 3 * alone <= quarter <= 5 * alone
    assert recorded_every(tmp_path / "stranger", monkeypatch, (1 << 64) - 1) <= tracker.MAX_EVERY
