"""Is the peak that hightide reports the kernel's own? Three programs that are not ours.

    python bench/maxrss.py

The kernel's figure is ru_maxrss of the same process in the same run (/usr/bin/time asks for it
too), so it is taken inside hightide, by a shell-free wrapper that waits for the program.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from common import PYTHON, Recordings, Row, exit_code, must, publish, run

# Waits for its arguments and writes the largest resident set of the process it waited for.
WAITER = """
import os, resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
open(sys.argv[1], "w").write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024))
sys.exit(code)
"""


def programs(folder: Path) -> dict[str, list[object]]:
    """Real work for xz, GNU sort and scikit-learn's own example data and solvers."""
    text = folder / "numbers.txt"
    random_ = random.Random(3)
    text.write_text("".join(f"{random_.random()}\n" for _ in range(1_500_000)))
    fit = (
        "from sklearn.datasets import make_classification;"
        "from sklearn.ensemble import RandomForestClassifier;"
        "x, y = make_classification(20000, 40, random_state=0);"
        "RandomForestClassifier(20, n_jobs=1, random_state=0).fit(x, y)"
    )
    return {
        "xz -9": ["xz", "-9", "--keep", "--force", "--threads=1", text],
        "sort": ["sort", "--parallel=1", "--buffer-size=300M", "-o", folder / "sorted.txt", text],
        "scikit-learn's random forest": [PYTHON, "-c", fit],
    }


def main() -> int:
    argparse.ArgumentParser(description="Compare reported peaks with the kernel's maxrss.").parse_args()
    rows, raw = [], {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, command in programs(folder).items():
            data = Recordings()
            must(run([*data.command(), sys.executable, "-c", WAITER, folder / "kernel", *command]))
            kernel = int((folder / "kernel").read_text())
            reported = peak_of_child(data)
            error = reported / kernel - 1
            figure = f"{reported / 2**20:.1f} of {kernel / 2**20:.1f} MiB: {error:+.2%}"
            rows.append(Row(what, figure, "within 2 %", abs(error) <= 0.02))
            raw[what] = [reported, kernel]
    publish("maxrss", rows, raw)
    return exit_code(rows)


def peak_of_child(data: Recordings) -> int:
    """The reported peak of the process that ran the program, from the report's processes table."""
    report = data.report()
    table = next(t for t in report["tables"] if t["name"] == "processes")
    names = [column["name"] for column in table["columns"]]
    rows = [dict(zip(names, cells, strict=True)) for cells in table["rows"]]
    return max(int(row["rss"]) for row in rows if "RUSAGE_CHILDREN" not in str(row))


if __name__ == "__main__":
    sys.exit(main())
