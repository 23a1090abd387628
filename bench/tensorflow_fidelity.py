"""TensorFlow on an imaginary A100 against the same program computed on the CPU: a table for docs/fidelity.md.

    python3 bench/tensorflow_fidelity.py [NAME …]   all programs of testdata/tensorflow, or those; about 45 s each on two cores

Needs the environment of scripts/setup tensorflow, and bin/hightide. Kernels of a CPU keep other things than a GPU's, so only
programs of dense layers without XLA must agree with it. Those that XLA compiles whole must agree with its assignment of buffers.
"""

from __future__ import annotations

import os
import re
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
MOMENT = 4 * (2 * 1024 * 4096 + 4096 + 1024)  # of Adam: one value for each of the weights
BATCH = 2 * 4 * 2048 * 1024
COMPILED = {"jit": BATCH, "fit": BATCH + BATCH // 4, "on_batch": BATCH}  # by XLA; bytes of what they train with
IN_TURN = {"TF_NUM_INTEROP_THREADS": "1"}
ON_CPU = {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_ENABLE_ONEDNN_OPTS": "0"}


def said(text: str, word: str) -> int:
    """The figure behind a word, in bytes."""
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(word + " "))


def assigned(folder: Path) -> int:
    """XLA's temporaries of the largest program that it dumped."""
    texts = (path.read_text() for path in folder.glob("*gpu_after_optimizations-buffer-assignment.txt"))
    return max(int(size) for text in texts for size in re.findall(r"size (\d+), preallocated-temp", text))


def measured(name: str, folder: Path) -> tuple[int, int, int, int]:
    """The imagined peak; parameters and optimizer's state in it; what was asked for at most, and that of the witness."""
    dump = {"XLA_FLAGS": f"--xla_dump_to={folder / 'dump'}"} if name in COMPILED else {}
    verdict, _ = imaginary.imagined(
        TENSORFLOW, folder, FOLDER / "programs.py", name, variables={**IN_TURN, **dump}, flags=("--no-suggest",)
    )
    parts = {one["name"]: int(one["bytes"]) for one in verdict["categories"]}
    kept = sum(parts.get(part, 0) for part in ("parameters", "optimizer", "state"))
    asked = int(verdict["peak_lines_asked_bytes"])
    peak = int(verdict["peak_allocated_bytes"])
    if name in COMPILED:
        return peak, kept, asked, kept + COMPILED[name] + assigned(folder / "dump") + MOMENT
    computed = subprocess.run(
        [str(TENSORFLOW), str(FOLDER / "requested.py"), name],
        capture_output=True, text=True, env=imaginary.environment(folder, **ON_CPU, **IN_TURN), timeout=900, check=True,
    )  # fmt: skip
    return peak, kept, asked, said(computed.stdout, "requested")


def main() -> int:
    print(
        "| program | imagined peak | parameters, optimizer | asked for | … computed on the CPU, or assigned by XLA (†) | difference |"
    )
    print("|---|---|---|---|---|---|")
    wrong = []
    for name in sys.argv[1:] or NAMES:
        with tempfile.TemporaryDirectory() as folder:
            peak, kept, asked, computed = measured(name, Path(folder))
        off = 100 * (asked - computed) / computed
        mark = " †" if name in COMPILED else ""
        print(f"| {name}{mark} | {peak:,} | {kept:,} | {asked:,} | {computed:,} | {off:+.2f} % |", flush=True)
        if (name in SAME or name in COMPILED) and abs(off) > 1:
            wrong.append(name)
    print("differ: " + ", ".join(wrong) if wrong else "as expected", file=sys.stderr)
    return 1 if wrong else os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
