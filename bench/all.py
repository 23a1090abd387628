"""Run every measurement, one after the other: python bench/all.py [--quick]."""

from __future__ import annotations

import subprocess
import sys

from common import BENCH

SCRIPTS = [
    "overhead",
    "adapters",
    "beside",
    "leaks",
    "truth",
    "maxrss",
    "footprint",
    "pss",
    "recordings",
    "snapshot",
    "replay",
    "whatif",
    "explorer",
    "timelines",
    "branches",
    "mutants",
    "imagine_a10",
    "verdicts",
    "fidelity",
    "interrupts",
    "stranger",
    "top",
]


def main() -> int:
    failed = []
    for name in SCRIPTS:
        print(f"== {name}", flush=True)
        if subprocess.run([sys.executable, BENCH / f"{name}.py", *sys.argv[1:]]).returncode:
            failed.append(name)
    print("bars missed in: " + ", ".join(failed) if failed else "every bar held")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
