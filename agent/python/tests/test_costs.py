"""What the search for growth may cost: little where memory only seemed to rise."""

from __future__ import annotations

from typing import Tuple

import pytest

from conftest import SOURCE  # noqa: F401  (puts the agent on the path)
from hightide_agent import costs
from hightide_agent.costs import Costs

MiB = 1 << 20
SECOND = 10**9
MS = 10**6


class Program:
    """One whose memory and processor time are set."""

    def __init__(self) -> None:
        self.rss = 600 * MiB
        self.device = -1
        self.time = 0
        self.costs = Costs(lambda: self._held, lambda: self.time)

    def _held(self) -> Tuple[int, int]:
        return self.device, self.device


@pytest.fixture()
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    found = Program()
    monkeypatch.setattr(costs.resident, "rss", lambda: found.rss)
    return found


def spends(program: Program, seconds: int) -> float:
    """Let it run so long, asked all the time: the share of scans of 10 ms and looks of 250 ms in it."""
    program.costs.asked()
    for _ in range(10 * seconds):
        program.time += SECOND // 10
        if program.costs.affords_scan(True):
            program.costs.scanned(10 * MS)
            if program.costs.affords_look():
                program.costs.looked(250 * MS)
    return (program.costs.scans + program.costs.looks) / program.time


def test_what_is_asked_for_in_a_program_that_does_not_grow_costs_a_thousandth(program: Program) -> None:
    assert 0 < spends(program, 60) <= costs.SHARE
    program.rss += 3 * MiB  # as noise is
    assert spends(program, 3000) <= costs.SHARE


def test_a_forked_child_is_looked_through_once_it_has_grown(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs.resident, "at_fork", 400 * MiB)
    program.rss = 400 * MiB
    program.costs.asked()
    program.time += 3600 * SECOND
    program.rss += 150 * MiB
    assert program.costs.rises() and not program.costs.affords_look()
    program.rss += 50 * MiB
    assert program.costs.affords_look()


def test_a_warm_up_of_before_the_first_request_is_no_rise(program: Program) -> None:
    program.rss = 10 * MiB
    assert not program.costs.rises()
    program.rss = 4000 * MiB
    program.costs.asked()
    program.rss += 39 * MiB  # not one part in a hundred
    assert not program.costs.rises()
    program.rss += 2 * MiB
    assert program.costs.rises()


def test_a_look_comes_at_once_where_memory_rises_and_again_when_it_has_risen_further(program: Program) -> None:
    program.costs.asked()
    assert not program.costs.affords_look()
    program.rss += 7 * MiB
    assert program.costs.affords_look()
    program.costs.looked(250 * MS)
    assert not program.costs.affords_look()
    program.rss += 2 * MiB
    assert program.costs.affords_look()


def test_what_a_device_holds_is_memory_too(program: Program) -> None:
    program.device = 20 * MiB
    program.costs.asked()
    program.device += 5 * MiB
    assert program.costs.rises() and program.costs.affords_look()


def test_memory_that_cannot_be_read_does_not_rise(program: Program) -> None:
    program.rss = program.device = -1
    program.costs.asked()
    assert not program.costs.rises()


def test_the_first_scans_that_it_takes_to_see_a_container_grow_are_paid_once(program: Program) -> None:
    while program.costs.few_scans():
        program.costs.scanned(20 * MS)
    assert costs.BURST_NS < program.costs.scans <= costs.BURST_NS + 20 * MS
