"""Does hightide tell the truth? Small programs that say what is true of them, each recorded once.

    python bench/truth.py [--part figures findings advice stormlog] [--only NAME …] [--jobs N] [--folder FOLDER]

The programs are in bench/truth/PART, one file each, and say their truth in their docstring; what is asked of them
is in truth_PART.py. The programs of advice stand in truth_advice.py, as pairs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import truth_advice
import truth_figures
import truth_findings
import truth_stormlog

from common import exit_code, publish

PARTS = {
    "figures": truth_figures.rows,
    "findings": truth_findings.rows,
    "advice": truth_advice.rows,
    "stormlog": truth_stormlog.rows,
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Hold what hightide says against what is known.")
    parser.add_argument("--part", nargs="+", choices=list(PARTS), default=["figures", "findings"])
    parser.add_argument("--only", nargs="+", default=[], help="programs whose name has one of these in it")
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time")
    parser.add_argument("--quick", action="store_true", help="one of ten programs")
    parser.add_argument("--folder", type=Path, help="keeps recordings of findings; those in it are read, not made anew")
    parser.add_argument(
        "--speeds", nargs="+", type=int, metavar="MS", help="findings at these pauses a step, as 5 16 100"
    )
    options = parser.parse_args()
    rows, raw = [], {}
    for part in options.part:
        asked = (options.only, options.jobs, options.quick, options.folder)
        if part == "findings" and options.speeds:
            found, raw[part] = truth_findings.at_speeds(*asked, options.speeds)
        else:
            found, raw[part] = PARTS[part](*asked)
        rows += found
    publish("truth", rows, raw)
    return exit_code(rows)


if __name__ == "__main__":
    sys.exit(main())
