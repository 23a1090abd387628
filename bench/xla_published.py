"""JAX and TensorFlow on imaginary GPUs against what others published of real ones: a table for docs/fidelity.md.

    python3 bench/xla_published.py [PROGRAM …]   all of bench/published, or those; about 10 s each on two cores

Needs the environments of scripts/setup xla and scripts/setup tensorflow, and bin/hightide. Ends with 1 where a figure is not
between the bounds that follow from what was published; docs/fidelity.md explains each difference.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from common import BENCH, CACHE, HIGHTIDE

sys.path.insert(0, str(BENCH.parent / "scripts" / "tests"))
import imaginary

MATRIX = 500 * 500 * 2  # bytes of the matrix of published/recomputed.py


@dataclass(frozen=True)
class Published:
    """A program, the GPU it is imagined on, and of each figure that it prints the least and the most that agree."""

    program: str
    environment: str
    gpu: str
    figures: dict[str, tuple[int, int | None]]
    variables: dict[str, str] = field(default_factory=dict)


ALL = (
    Published("sums", "xla", "gh200", {"temporaries": (102_432_004_352, 102_432_008_192)}),
    Published(
        "normalised", "xla", "a100-80g",
        {"arguments": (131_072, 131_072), "outputs": (65_536, 65_536), "donated": (65_536, 65_536), "temporaries": (512, 512)},
        {"XLA_FLAGS": "--xla_disable_hlo_passes=triton-softmax-rewriter"},
    ),
    Published("chain", "tensorflow", "a100-80g", {"peak": (3_003_648 - 1_280, 3_003_648)}),
    Published(
        "recomputed", "tensorflow", "a100-80g",
        {
            "kept-eager": (25 * MATRIX, None), "kept-graph": (25 * MATRIX, None),
            "recomputed-eager": (10 * MATRIX, 15 * MATRIX), "recomputed-graph": (10 * MATRIX, 15 * MATRIX),
        },
    ),
)  # fmt: skip


def printed(one: Published, folder: Path) -> dict[str, int]:
    """The figures that the program prints on the imaginary GPU."""
    python = CACHE / one.environment / "bin" / "python"
    done = subprocess.run(
        [str(HIGHTIDE), "imagine", "--gpu", one.gpu, "--steps", "0", "--no-suggest", "--quiet", "--",
         str(python), str(BENCH / "published" / f"{one.program}.py")],
        capture_output=True, text=True, env=imaginary.environment(folder, **one.variables), timeout=900,
    )  # fmt: skip
    words = (line.split() for line in done.stdout.splitlines())
    found = {line[0]: int(line[1]) for line in words if len(line) == 2 and line[0] in one.figures}
    assert found.keys() == one.figures.keys(), done.stdout[-1000:] + done.stderr[-4000:]
    return found


def main() -> int:
    print("| program | figure | least | most | imagined |\n|---|---|---|---|---|")
    wrong = []
    for one in ALL:
        if len(sys.argv) > 1 and one.program not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for name, figure in printed(one, Path(folder)).items():
                least, most = one.figures[name]
                bound = "" if most is None else f"{most:,}"
                print(f"| {one.program} | {name} | {least:,} | {bound} | {figure:,} |", flush=True)
                if figure < least or (most is not None and figure > most):
                    wrong.append(f"{one.program}: {name}")
    print("differ: " + ", ".join(wrong) if wrong else "as expected", file=sys.stderr)
    return 1 if wrong else os.EX_OK


if __name__ == "__main__":
    raise SystemExit(main())
