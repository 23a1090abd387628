"""Taking in samples, and an hour of eight processes: the recording's size, the report's time.

    python bench/recordings.py [--quick]

The Go side is bench/recordings_test.go. The report is the whole command, from start to the written
HTML file.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

from common import HIGHTIDE, ROOT, Row, bootstrap, exit_code, must, publish, run


def ingest(seconds: int) -> Row:
    command = ["go", "test", "-run", "^$", "-bench", "Ingest", "-benchtime", f"{seconds}s", "./bench"]
    output = must(run(command, env={"CGO_ENABLED": "0"}, cwd=ROOT)).stdout
    found = re.search(r"([\d.e+]+) samples/s", output)
    if not found:
        sys.exit(f"no figure in {output}")
    rate = float(found[1])
    return Row("samples taken in, one core", f"{rate:,.0f} a second", ">= 300,000", rate >= 300_000)


def hour(rounds: int) -> tuple[list[Row], object]:
    with tempfile.TemporaryDirectory() as name:
        must(run(["go", "test", "-count=1", "-run", "^TestHour$", "./bench"], {"HIGHTIDE_HOUR": name}, ROOT))
        (file,) = Path(name).glob("runs/*/run.hightide")
        size = file.stat().st_size
        html = Path(name) / "report.html"
        runs = [must(run([HIGHTIDE, "report", file, "--html", html])) for _ in range(rounds)]
        page = html.stat().st_size
        rows = [analyses(name, rounds)]
    time = bootstrap([done.wall for done in runs])
    memory = max(done.maxrss for done in runs)
    rows += [
        Row("an hour of eight processes, recording", f"{size / 1e6:.1f} MB", "<= 30 MB", size <= 30e6),
        Row("its report as HTML, time", f"{time.text(2)} s", "<= 2 s", time.high <= 2),
        Row("its report as HTML, size", f"{page / 1e6:.2f} MB", "< 1 MB", page < 1e6),
        Row("  memory to make the report", f"{memory / 2**20:.0f} MiB"),
    ]
    return rows, {"bytes": size, "seconds": [done.wall for done in runs], "html": page, "maxrss": memory}


def analyses(folder: str, rounds: int) -> Row:
    """All of them on the recording, once it is read. Processor time, which a busy machine lengthens less than time."""
    command = ["go", "test", "-run", "^$", "-bench", "Analyses/^all$", "-benchtime", f"{2 * rounds}x", "./bench"]
    output = must(run(command, {"HIGHTIDE_HOUR": folder}, ROOT)).stdout
    cpu, wall = (re.search(rf"([\d.e+]+) {unit}", output) for unit in ("cpu-ms/op", "ns/op"))
    if not cpu or not wall:
        sys.exit(f"no figure in {output}")
    figure = f"{float(cpu[1]):.0f} ms of processor time, {float(wall[1]) / 1e6:.0f} ms"
    return Row("all analyses of it", figure, "<= 200 ms", float(cpu[1]) <= 200)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure recordings and reports.")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    rows = [ingest(1 if options.quick else 5)]
    more, raw = hour(2 if options.quick else 10)
    publish("recordings", rows + more, raw)
    return exit_code(rows + more)


if __name__ == "__main__":
    sys.exit(main())
