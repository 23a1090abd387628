"""Every example runs under the built program and gets the answer that its docstring promises."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HIGHTIDE = ROOT / "bin" / "hightide"


def record(example: str, data: Path) -> "dict[str, Any]":
    """Record an example and return the object that `run --json` prints."""
    script = ROOT / "examples" / example
    done = subprocess.run(
        [HIGHTIDE, "run", "--data-dir", data, "--json", "--", sys.executable, script],
        capture_output=True, text=True, cwd=data, env={**os.environ, "HOME": str(data)}, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "accuracy 0.9" in done.stderr, "the training's own output goes to stderr beside --json"
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


def line_of(example: str, mark: str) -> int:
    lines = (ROOT / "examples" / example).read_text().splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if mark in line]
    return number


def leaks(summary: "dict[str, Any]") -> "list[dict[str, Any]]":
    return [f for f in summary["findings"] if f["kind"] in ("leak", "growth")]


def test_planted_leak_is_named(tmp_path: Path) -> None:
    """The line, and the bytes per step with an error that holds the truth: a busy machine leaves fewer samples.

    The truth: torch.autograd.graph.saved_tensors_hooks counts 2.5 MiB of storages a step that are not parameters.
    """
    summary = record("digits_leak.py", tmp_path)
    assert summary["steps"] == 276
    first = leaks(summary)[0]
    assert first["kind"] == "leak"
    assert (Path(first["file"]).name, first["line"]) == ("digits_leak.py", line_of("digits_leak.py", "# LEAK"))
    assert abs(first["bytes_per_step"] - 2.5 * 2**20) <= max(2 * first["error_bytes"], 0.05 * 2**20), first
    assert first["error_bytes"] < 1.5 * 2**20, first
    assert summary["peak"]["host_rss_bytes"] > 700 << 20


def test_nothing_is_found_where_nothing_leaks(tmp_path: Path) -> None:
    summary = record("digits.py", tmp_path)
    assert summary["steps"] == 276
    assert not leaks(summary)
    assert summary["dropped"] == 0
