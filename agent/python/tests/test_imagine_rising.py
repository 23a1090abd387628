"""What an early end leaves open: memory that still rose with the steps, and at which rate."""

import random
from typing import Any, List, Optional

import pytest

from hightide_agent.imagine.peaks import Peaks
from hightide_agent.tracker import STEP
from test_imagine_device import MIB, imagine  # noqa: F401

MANY = 200


class Told:
    """An agent that nothing is said to."""

    def record(self, fields: Any) -> bool:
        return True


def told(held: List[int], over: Optional[List[int]] = None) -> Any:
    """The record after steps that end with so much held, and have so much more at their peaks."""
    peaks = Peaks(Told())  # type: ignore[arg-type]
    for step, now in enumerate(held):
        high = now + (over[step] if over else MIB)
        peaks.saw(0, (max(high, peaks.of[0].allocated if step else 0), high), now, STEP, step)
        peaks.step_ended()
    return peaks.open_end(len(held), rose=False)


def test_a_peak_that_rises_with_each_step_has_a_rate() -> None:
    assert told([n * MIB for n in range(MANY)])["per_step_bytes"] == MIB
    assert told([n // 10 * 10 * MIB for n in range(MANY)])["per_step_bytes"] == MIB, "ten at once, each tenth step"
    assert told([n * 512 for n in range(MANY)])["per_step_bytes"] == 512, "the number of its loss"


def test_what_is_kept_below_an_early_peak_has_a_rate() -> None:
    record = told([n * MIB for n in range(50)], [1000 * MIB] + [MIB] * 49)
    assert (record["per_step_bytes"], record["below_peak_bytes"]) == (MIB, 951 * MIB)


@pytest.mark.parametrize("seed", range(200))
def test_batches_of_different_sizes_have_none(seed: int) -> None:
    """Their longest so far comes ever more seldom, and what is held after one says nothing of the next."""
    sizes = random.Random(seed)
    held = [sizes.randrange(100) * MIB for _ in range(sizes.choice([20, 50, MANY]))]
    assert told(held) is None


def test_what_fills_or_stays_has_none() -> None:
    assert told([MIB] * MANY) is None
    assert told([min(n, 60) * MIB for n in range(MANY)]) is None, "a buffer that is full"
    assert told([n * MIB for n in range(19)]) is None, "too few steps to tell"


LATE = """
import torch
net = torch.nn.Linear(1024, 1024).cuda()
adam = torch.optim.AdamW(net.parameters())
torch.zeros(1 << 30, dtype=torch.uint8, device="cuda")
kept = []
for i in range(2000):
    x = torch.randn(1024, 1024, device="cuda")
    loss = net(x).square().mean()
    adam.zero_grad()
    loss.backward()
    adam.step()
    kept.append(x)
"""


def test_a_training_that_keeps_more_each_step(imagine: Any) -> None:  # noqa: F811
    """Its peak is steady, as it was before the first step: it is ended, and says what it leaves open."""
    result = imagine(LATE)
    (left,) = result.main.all("not_reached")
    assert (left["what"], left["per_step_bytes"], left["device"]) == ("steady peak", 4 * MIB, "cuda:0")
    assert left["below_peak_bytes"] == pytest.approx(
        (1 << 30) - result.main.one("stop")["step"] * 4 * MIB, abs=32 * MIB
    )


def test_a_pass_that_runs_out_of_memory_has_the_line_that_waits(imagine: Any) -> None:  # noqa: F811
    """Backward runs in a thread without Python, in which only functions of ours have lines."""
    result = imagine(
        """
        import sys, torch
        w = torch.ones(64 << 20, device="cuda", requires_grad=True)
        loss = w.unsqueeze(0).expand(64, -1).sum()
        filled = []
        try:
            while True:
                filled.append(torch.empty(32 << 20, dtype=torch.uint8, device="cuda"))
        except torch.cuda.OutOfMemoryError:
            pass
        try:
            print(sys._getframe().f_lineno + 1)
            loss.backward()  # its gradient needs 256 MiB
        except torch.cuda.OutOfMemoryError:
            pass
        """,
        HIGHTIDE_IMAGINE_STEPS="0",
    )
    last = result.main.all("oom")[-1]
    assert last["line"] == int(result.out) and "site-packages" not in last["file"], last
