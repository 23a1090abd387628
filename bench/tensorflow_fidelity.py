"""TensorFlow on an imaginary A100 against the same program computed on the CPU: a table for docs/fidelity.md.

    python3 bench/tensorflow_fidelity.py [NAME …]   all programs of testdata/tensorflow, or those; about 45 s each on two cores

Needs the environment of scripts/setup tensorflow, and bin/hightide. Kernels of a CPU keep other things than a GPU's, so only
programs of dense layers without XLA must agree.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts" / "tests"))
import imaginary

TENSORFLOW = imaginary.CACHE / "tensorflow" / "bin" / "python"
FOLDER = imaginary.ROOT / "testdata" / "tensorflow"
NAMES = ("eager", "function", "datasets", "jit", "fit", "on_batch", "attention", "convolutions", "recurrent", "mixed")
SAME = ("eager", "function")  # operations of which a CPU's kernels keep the same
IN_TURN = {"TF_NUM_INTEROP_THREADS": "1"}
ON_CPU = {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_ENABLE_ONEDNN_OPTS": "0"}


def said(text: str, word: str) -> int:
    """The figure behind a word, in bytes."""
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(word + " "))


def measured(name: str, folder: Path) -> tuple[int, int, int, int]:
    """The imagined peak; parameters and optimizer's state in it; what was asked for at most, and that on the CPU."""
    verdict, _ = imaginary.imagined(
        TENSORFLOW, folder, FOLDER / "programs.py", name, variables=IN_TURN, flags=("--no-suggest",)
    )
    computed = subprocess.run(
        [str(TENSORFLOW), str(FOLDER / "requested.py"), name],
        capture_output=True, text=True, env=imaginary.environment(folder, **ON_CPU, **IN_TURN), timeout=900, check=True,
    )  # fmt: skip
    parts = {one["name"]: int(one["bytes"]) for one in verdict["categories"]}
    kept = sum(parts.get(part, 0) for part in ("parameters", "optimizer", "state"))
    asked = int(verdict["peak_lines_asked_bytes"])
    return int(verdict["peak_allocated_bytes"]), kept, asked, said(computed.stdout, "requested")


def main() -> int:
    print("| program | imagined peak | parameters, optimizer | asked for | … computed on the CPU | difference |")
    print("|---|---|---|---|---|---|")
    wrong = []
    for name in sys.argv[1:] or NAMES:
        with tempfile.TemporaryDirectory() as folder:
            peak, kept, asked, computed = measured(name, Path(folder))
        off = 100 * (asked - computed) / computed
        print(f"| {name} | {peak:,} | {kept:,} | {asked:,} | {computed:,} | {off:+.2f} % |", flush=True)
        if name in SAME and abs(off) > 1:
            wrong.append(name)
    print("differ: " + ", ".join(wrong) if wrong else "as expected", file=sys.stderr)
    return 1 if wrong else os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
