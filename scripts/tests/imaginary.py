"""What tests of frameworks on imaginary GPUs share: a program under the built hightide, and its verdict."""

from __future__ import annotations

import json
import os
import subprocess
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HIGHTIDE = ROOT / "bin" / "hightide"
CACHE = Path(os.environ.get("HIGHTIDE_CACHE", Path.home() / ".cache" / "hightide"))
XLA = CACHE / "xla" / "bin" / "python"  # with JAX, optax, Flax, Equinox and Haiku
MiB, GiB = 1 << 20, 1 << 30
A100 = "a100-80gb"


def environment(folder: Path, **more: str) -> dict[str, str]:
    """As tests run; XLA's flags are left to hightide."""
    left = {
        name: value for name, value in os.environ.items() if not name.startswith(("XLA_", "JAX_", "TF_", "HIGHTIDE_"))
    }
    flags = {"HOME": str(folder), "OMP_NUM_THREADS": "1"}
    return {**left, **flags, "TF_CPP_MIN_LOG_LEVEL": "2", "HIGHTIDE_DATA": str(folder / "data"), **more}


def imagined(python: Path, folder: Path, *command: object, gpu: str = A100, flags: tuple[str, ...] = (), code: int = 0,
             steps: str = "0", variables: dict[str, str] | None = None) -> tuple[dict[str, Any], str]:  # fmt: skip
    """The verdict, and what the program printed. A program runs to its end: after how many steps `auto` ends it follows from
    the processor's speed."""
    run = [HIGHTIDE, "imagine", "--gpu", gpu, "--steps", steps, *flags, "--json", "--", python, *command]
    done = subprocess.run(
        [str(word) for word in run],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(folder, **variables or {}),
        timeout=1200,
    )
    assert done.returncode == code, done.stdout[-1000:] + done.stderr[-4000:]
    verdict: dict[str, Any] = json.loads(done.stdout)
    return verdict.get("imagined", verdict), done.stderr


def parts(verdict: dict[str, Any]) -> dict[str, int]:
    """Bytes at the peak by what they were for."""
    return {one["name"]: one["bytes"] for one in verdict["categories"]}


def findings(folder: Path, verdict: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Those of a kind in the report of an imagined run."""
    show = [str(HIGHTIDE), "show", "--json", verdict["run_id"]]
    done = subprocess.run(show, capture_output=True, text=True, env=environment(folder), check=True)
    return [one for one in json.loads(done.stdout)["findings"] if one["kind"] == kind]


def script(folder: Path, text: str) -> Path:
    """A program in that folder."""
    file = folder / "train.py"
    file.write_text(textwrap.dedent(text))
    return file


def near(value: int, truth: int, share: float) -> bool:
    """Whether a figure is within a share of the truth."""
    return abs(value - truth) <= share * truth
