"""The leak benchmark at reduced scale; bench/leaks.py is the full one, every kind at 64 KiB to 20 MiB a step."""

import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
import leaks  # noqa: E402

MiB = 1 << 20


@pytest.mark.parametrize(
    "name, size",
    [("in_numpy", MiB // 2), ("in_extension", 4 * MiB)],  # a list of tensors: test_examples
)
def test_planted_leak_is_named(name: str, size: int) -> None:
    script = BENCH / "leaks" / f"{name}.py"
    figure, named = leaks.judge(script, size, leaks.growth(leaks.record(script, size)))
    assert named, figure


@pytest.mark.parametrize("name", ["cache_that_stops", "saw_tooth"])
def test_innocent_has_no_finding(name: str) -> None:
    assert not leaks.growth(leaks.record(BENCH / "innocents" / f"{name}.py", MiB))
