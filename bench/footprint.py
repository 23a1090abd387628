"""How much memory hightide itself takes: in the observed process, and its engine.

    python bench/footprint.py [--quick]

In the process: resident set of the same training with and without hightide, at the same point; it
counts the rings that are shared with the engine in full.
Engine: the high-water mark of its resident set while it records eight processes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from common import BENCH, PYTHON, KiB, MiB, Recordings, Row, bootstrap, exit_code, interleaved, must, publish, run


def agent(rounds: int) -> tuple[list[Row], object]:
    data = Recordings()
    program = [PYTHON, BENCH / "programs" / "resident.py"]
    found = interleaved(
        rounds,
        {"plain": lambda: must(run(program)), "run": lambda: must(run([*data.command(), *program]))},
    )
    held = {name: [int(done.stdout) for done in runs] for name, runs in found.items()}
    added = bootstrap([(a - b) / MiB for a, b in zip(held["run"], held["plain"], strict=True)])
    return [Row("added to the process", f"{added.text(1)} MiB", "<= 15 MB", added.high * MiB <= 15e6)], held


def engine(seconds: float) -> tuple[list[Row], object]:
    data = Recordings()
    command = [*data.command(), str(PYTHON), str(BENCH / "programs" / "eight.py"), str(seconds)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    recording = peak = 0
    while process.poll() is None:
        now = high_water(process.pid)
        if children(process.pid):
            recording = max(recording, now)
        peak = max(peak, now)
        time.sleep(0.02)
    if process.returncode:
        sys.exit(f"the eight processes ended with {process.returncode}")
    rows = [
        Row("engine, recording eight processes", f"{recording / MiB:.1f} MiB", "<= 60 MB", 0 < recording <= 60e6),
        Row("engine, its report at the end included", f"{peak / MiB:.1f} MiB", "<= 60 MB", 0 < peak <= 60e6),
    ]
    return rows, [recording, peak]


def children(pid: int) -> bool:
    try:
        return any(file.read_text().strip() for file in Path(f"/proc/{pid}/task").glob("*/children"))
    except OSError:
        return False


def high_water(pid: int) -> int:
    """VmHWM of a process in bytes; 0 once it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * KiB for line in status.splitlines() if line.startswith("VmHWM")), 0)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure hightide's own memory.")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    rows, in_process = agent(3 if options.quick else 10)
    more, in_engine = engine(5 if options.quick else 60)
    rows += more
    publish("footprint", rows, {"process": in_process, "engine": in_engine})
    return exit_code(rows)


if __name__ == "__main__":
    sys.exit(main())
