"""The figures of a run against the kernel's own: marks, PSS of a tree, what a process held.

The programs say the truth themselves (truth/kernel.py): their high-water mark when they are at their peak, the
sum of PSS of their tree while it stands still, and where it has a closed form what they hold.
"""

from __future__ import annotations

import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import BENCH, PYTHON, MiB, Recordings, Row

PROGRAMS = BENCH / "truth" / "figures"

MARK = 0.005  # of a process's peak against the kernel's mark
PSS = 0.05  # of the tree's, else a stated range that holds the truth, no wider to either side than
RANGE = 0.15
HELD = 0.05  # of what a program holds, beside the stated error and
FREE = 0.1  # of what malloc keeps free
INTERPRETER = 16 * MiB  # what Python and the helpers hold


@dataclass
class Result:
    """What one program said, what hightide said, and which checks it failed."""

    name: str
    truth: dict[str, int] = field(default_factory=dict)
    said: dict[str, Any] = field(default_factory=dict)
    checks: dict[str, str | None] = field(default_factory=dict)  # None: held


def near(said: float, truth: float, part: float) -> bool:
    return abs(said - truth) <= part * truth


def mib(value: float) -> str:
    return f"{value / MiB:.1f}"


def table(report: dict[str, Any], name: str) -> list[dict[str, Any]]:
    for found in report["tables"]:
        if found["name"] == name:
            names = [column["name"] for column in found["columns"]]
            return [dict(zip(names, row, strict=True)) for row in found["rows"]]
    return []


def record(program: Path) -> Result:
    result = Result(program.stem)
    data = Recordings()
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "truth"
        environment = {"TRUTH": str(said), "PYTHONPATH": str(BENCH / "truth")}
        data.record([PYTHON, "-W", "ignore", program], env=environment)
        for line in said.read_text().splitlines() if said.exists() else []:
            for key, value in json.loads(line).items():
                result.truth[key] = max(value, result.truth.get(key, 0))
    result.checks["said"] = None if result.truth else "the program said nothing"
    report = data.report()
    result.said = {**report["headline"]["peak"], "source": report["headline"]["main_source"]}
    check(result, report)
    return result


def check(result: Result, report: dict[str, Any]) -> None:
    checks, truth, peak = result.checks, result.truth, result.said
    processes = table(report, "processes")
    largest = max((row["rss"] or 0 for row in processes), default=0)
    if "maxrss" in truth:
        good = near(largest, truth["maxrss"], MARK)
        checks["mark"] = None if good else f"{mib(largest)} of {mib(truth['maxrss'])} MiB"
    if "pss" in truth:
        checks["pss"] = of_pss(peak, truth["pss"])
    rows = table(report, "composition")
    held = [row for row in rows if row["kind"] not in ("rest", "process", "untouched", "free")]
    total, error = sum(row["bytes"] for row in held), max((row["error"] or 0 for row in held), default=0)
    checks["held below the peak"] = None if total <= largest else f"{mib(total)} of {mib(largest)} MiB"
    if "free" in truth:
        free = sum(row["bytes"] for row in rows if row["kind"] == "free")
        checks["free"] = None if near(free, truth["free"], FREE) else f"{mib(free)} of {mib(truth['free'])} MiB"
    if "held" in truth:
        off = abs(total - truth["held"])
        good = off <= error + HELD * truth["held"] + INTERPRETER
        checks["held"] = None if good else f"{mib(total)} ± {mib(error)} of {mib(truth['held'])} MiB"
    curves = [max(s["y"]) for s in report["series"] if s["name"] == peak["source"] and not s.get("process")]
    headline = peak.get("host_pss_bytes" if peak["source"] == "tree.pss" else "host_rss_bytes", 0)
    if curves:
        checks["one peak"] = None if curves[0] == headline else f"{mib(headline)}, curve {mib(curves[0])} MiB"


def of_pss(peak: dict[str, Any], truth: int) -> str | None:
    said, half = peak.get("host_pss_bytes", 0), peak.get("host_pss_error_bytes", 0)
    if near(said, truth, PSS) or abs(said - truth) <= half <= RANGE * said:
        return None
    return f"{mib(said)} ± {mib(half)} of {mib(truth)} MiB"


def rows(only: list[str], jobs: int, quick: bool, folder: Path | None) -> tuple[list[Row], object]:
    programs = sorted(PROGRAMS.glob("*.py"))
    programs = [p for p in programs if not only or any(word in p.stem for word in only)]
    programs = programs[::10] if quick else programs
    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(record, programs))
    found = []
    for what, bar in (
        ("said", "all"),
        ("mark", "0.5 %"),
        ("pss", "5 %, or a range"),
        ("held below the peak", "never"),
        ("held", "known"),
        ("free", "10 %"),
        ("one peak", "equal"),
    ):
        asked = [r for r in results if what in r.checks]
        wrong = [f"{r.name}: {r.checks[what]}" for r in asked if r.checks[what] is not None]
        if asked:
            found.append(Row(f"figures: {what}", f"{len(asked) - len(wrong)} of {len(asked)}", bar, not wrong))
            found += [Row(f"  {line}", "") for line in wrong]
    return found, [vars(r) for r in results]
