"""JAX on an imaginary A100 against XLA's own analysis for that card, compiled without any device: a table for docs/fidelity.md.

    python3 bench/xla.py [NAME …]       all programs of testdata/xla, or those; about 25 s each on two cores

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
FILES, TARGET = (FOLDER / "programs.py", FOLDER / "libraries.py"), FOLDER / "a100.txtpb"


def programs() -> dict[str, Path]:
    """The file of each program, in the order in which the files list them."""
    found: dict[str, Path] = {}
    for file in FILES:
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PROGRAMS":
                assert isinstance(node.value, ast.Dict)
                found.update((str(ast.literal_eval(key)), file) for key in node.value.keys if key is not None)
    return found


def analysis(text: str) -> int:
    """What a program prints of XLA's analysis, in bytes."""
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("analysis "))


def measured(name: str, file: Path, folder: Path) -> tuple[int, int, int, int]:
    """The peak of the imagined run, what was asked for of it, XLA's analysis in it, and without any device."""
    verdict, said = imaginary.imagined(XLA, folder, file, name, "train", flags=("--no-suggest",))
    without = subprocess.run(
        [str(XLA), str(file), name, "truth", str(TARGET)],
        capture_output=True, text=True, env=imaginary.environment(folder), timeout=600, check=True,
    )  # fmt: skip
    asked = int(verdict["peak_lines_asked_bytes"])
    return int(verdict["peak_allocated_bytes"]), asked, analysis(said), analysis(without.stdout)


def main() -> int:
    print("| program | imagined peak | XLA's analysis | without a device | difference | … of what was asked for |")
    print("|---|---|---|---|---|---|")
    worst, files = 0.0, programs()
    for name in sys.argv[1:] or files:
        with tempfile.TemporaryDirectory() as folder:
            peak, asked, here, without = measured(name, files[name], Path(folder))
        off, of_asked = (100 * (value - without) / without for value in (peak, asked))
        worst = max(worst, abs(of_asked))
        rest = f"{of_asked:+.2f} %" if abs(off) > 0.5 else ""
        print(f"| {name} | {peak:,} | {here:,} | {without:,} | {off:+.2f} % | {rest} |", flush=True)
    print(f"largest difference {worst:.2f} %", file=sys.stderr)
    return os.EX_OK if worst <= 0.5 else 1


if __name__ == "__main__":
    sys.exit(main())
