"""What half of a batch would need, as `explain` says of a program that XLA dumped, and what XLA makes of half of it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from imaginary import HIGHTIDE, ROOT, XLA, environment

PROGRAMS = ROOT / "testdata" / "xla" / "programs.py"
TARGET = ROOT / "testdata" / "xla" / "a100.txtpb"

pytestmark = pytest.mark.skipif(not XLA.exists(), reason=f"{XLA} is not there: scripts/setup xla")


def explained(folder: Path, dump: Path, *flags: str) -> tuple[list[Any], dict[str, Any]]:
    """The row of what half of it would need, and the report."""
    done = subprocess.run(
        [str(HIGHTIDE), "explain", str(dump), *flags, "--json"],
        capture_output=True, text=True, env=environment(folder), check=True,
    )  # fmt: skip
    report: dict[str, Any] = json.loads(done.stdout)
    (table,) = [one for one in report["tables"] if one["name"] == "half"]
    return table["rows"][0], report


STEPS = {
    "donated": 1024,
    "attention": 8,
    "convolutions": 8,
    "scan": 1024,
    "remat": 1024,
    "accumulated": 1024,
    "recurrent": 128,
}


@pytest.mark.parametrize(
    ("name", "target"),
    [(name, (TARGET,)) for name in STEPS] + [(name, ()) for name in ("donated", "scan", "attention")],
)
def test_half_of_a_batch(tmp_path: Path, name: str, target: tuple[Path, ...]) -> None:
    """The truth is the assignment of the same step, compiled at half. Where both ends are farther apart than a tenth, it is
    said."""
    batch = STEPS[name]
    command = [XLA, PROGRAMS, name, "halve", tmp_path, *target]
    subprocess.run(
        [str(word) for word in command],
        capture_output=True, text=True, env=environment(tmp_path, JAX_PLATFORMS="cpu"), timeout=600, check=True,
    )  # fmt: skip
    (arguments, guessed, half, needs, low, high), report = explained(tmp_path, tmp_path / "whole")
    assert (guessed, half) == (batch, batch // 2) and "batch[0]" in arguments, report["tables"]
    truth = explained(tmp_path, tmp_path / "half")[0][3]
    assert low <= truth <= high < needs, (low, truth, high, needs)
    (table,) = [one for one in report["tables"] if one["name"] == "half"]
    assert ("far apart" in table["note"]) == ((high - low) * 10 > (high + low) // 2), table
    assert f"with half of its batch, {half:,} in place of {batch:,}, it would need" in report["verdict"]
