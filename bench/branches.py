"""Branches of the allocator's model that its tests take; the Go tools count statements only.

    python bench/branches.py [-v]

bench/branches.go counts them, the programs of TestOracle included.
"""

from __future__ import annotations

import re
import sys

from common import ROOT, Row, exit_code, must, publish, run

MODEL = "./internal/allocator"
BAR = 95


def main() -> int:
    told = must(run(["go", "run", "bench/branches.go", "-v", MODEL], cwd=ROOT)).stdout
    if "-v" in sys.argv:
        print(told)
    rows = []
    for what, *numbers in re.findall(r"^(branches|conditions): (\d+) of (\d+)", told, re.MULTILINE):
        taken, total = map(int, numbers)
        share = 100 * taken / total
        rows.append(
            Row(
                f"{what} of the model that its tests take",
                f"{taken} of {total}, {share:.1f} %",
                f">= {BAR} %",
                share >= BAR,
            )
        )
    publish("branches", rows, {"never taken": [line for line in told.splitlines() if ": never " in line]})
    return exit_code(rows)


if __name__ == "__main__":
    sys.exit(main())
