"""JAX on an imaginary A100 against XLA's own analysis for that card, compiled without any device: a table for docs/fidelity.md.

    python3 bench/xla.py [NAME …]       all programs of testdata/xla/programs.py, or those; about 25 s each on two cores

Needs the environment of scripts/setup xla, and bin/hightide.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts" / "tests"))
import imaginary

XLA = imaginary.CACHE / "xla" / "bin" / "python"
FOLDER = imaginary.ROOT / "testdata" / "xla"
PROGRAMS, TARGET = FOLDER / "programs.py", FOLDER / "a100.txtpb"


def names() -> list[str]:
    """Of all programs, in the order in which the file lists them."""
    for node in ast.parse(PROGRAMS.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PROGRAMS":
            assert isinstance(node.value, ast.Dict)
            return [str(ast.literal_eval(key)) for key in node.value.keys if key is not None]
    raise SystemExit(f"{PROGRAMS} has no PROGRAMS")


def analysis(text: str) -> int:
    """What a program prints of XLA's analysis, in bytes."""
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("analysis "))


def measured(name: str, folder: Path) -> tuple[int, int, int]:
    """The peak of the imagined run, XLA's analysis in it, and without any device."""
    verdict, said = imaginary.imagined(XLA, folder, PROGRAMS, name, "train", flags=("--no-suggest",))
    without = subprocess.run(
        [str(XLA), str(PROGRAMS), name, "truth", str(TARGET)],
        capture_output=True, text=True, env=imaginary.environment(folder), timeout=600, check=True,
    )  # fmt: skip
    return int(verdict["peak_allocated_bytes"]), analysis(said), analysis(without.stdout)


def main() -> int:
    print("| program | imagined peak | XLA's analysis | without a device | difference |\n|---|---|---|---|---|")
    worst = 0.0
    for name in sys.argv[1:] or names():
        with tempfile.TemporaryDirectory() as folder:
            peak, here, without = measured(name, Path(folder))
        off = 100 * (peak - without) / without
        worst = max(worst, abs(off))
        print(f"| {name} | {peak:,} | {here:,} | {without:,} | {off:+.2f} % |", flush=True)
    print(f"largest difference {worst:.2f} %", file=sys.stderr)
    return os.EX_OK if worst <= 0.5 else 1


if __name__ == "__main__":
    sys.exit(main())
