"""The leak detectors of Stormlog, on the same programs and the same readings as hightide's findings.

Stormlog's detectors of leaks in a series look at numbers alone: detect_memory_leaks of its TensorFlow part and of its
JAX part (that of its PyTorch part wants the memory before and after each call of a function, and looks at no series).
They get the resident memory of the program's main process, as hightide read it, in MB: from the start, and from the
moment at which a user would have begun to track, after imports and warm-up (a quarter of the run); each second as its
tracker does by itself, and every tenth of a second. What they return anything for counts as called a leak. They name
no line, so only that is compared.
"""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import truth_findings

from common import CACHE, HIGHTIDE, Row, must, run

STORMLOG = CACHE / "stormlog" / "bin" / "python"
INTERVALS = (1.0, 0.1)
WARM_UP = 0.25  # of a run

# Read by Stormlog's interpreter: series by name as JSON, what was detected back.
DETECT = """
import importlib, json, sys, types
found = {}
for name, (times, values) in json.load(sys.stdin).items():
    series = types.SimpleNamespace(memory_usage=values, timestamps=times)
    found[name] = {
        part: [leak["type"] for leak in importlib.import_module(f"stormlog.{part}.analyzer").MemoryAnalyzer().detect_memory_leaks(series)]
        for part in ("tensorflow", "jax")
    }
json.dump(found, sys.stdout)
"""


def rows(only: Sequence[str], jobs: int, quick: bool, folder: Path | None) -> tuple[list[Row], object]:
    if not STORMLOG.exists():
        sys.exit(f"{STORMLOG} is not there: scripts/setup stormlog")
    if folder is None:
        sys.exit("--folder FOLDER, where --part findings keeps its recordings: both are judged by the same ones")
    programs = [p for p in truth_findings.known() if not only or any(name in p.path.stem for name in only)]
    programs = [p for p in programs if (folder / p.path.stem).exists()]
    if quick and not only:
        programs = programs[::10]
    with ThreadPoolExecutor(jobs) as pool:
        readings = dict(
            zip((p.path.stem for p in programs), pool.map(lambda p: resident(folder / p.path.stem), programs))
        )
    leaks = [p.path.stem for p in programs if p.leak]
    innocents = [p.path.stem for p in programs if not p.leak]
    with ThreadPoolExecutor(jobs) as pool:
        judged = list(pool.map(lambda p: truth_findings.judge(p, folder), programs))
    called = {j.program.path.stem for j in judged if (j.true if j.program.leak else j.false)}
    found, raw = [Row("hightide, a true finding of a leak, any of an innocent", figure(called, leaks, innocents))], {}
    for interval in INTERVALS:
        for warm_up in (0.0, WARM_UP):
            said = detect({name: thinned(*of, interval, warm_up) for name, of in readings.items()})
            for part in ("tensorflow", "jax"):
                called = {name for name, parts in said.items() if parts[part]}
                what = f"Stormlog, its {part} detector, {'whole run' if not warm_up else 'after warm-up'}, each {interval:g} s"
                found.append(Row(what, figure(called, leaks, innocents)))
            raw[f"{interval:g} s, from {warm_up:g}"] = said
    return found, raw


def figure(called: set[str], leaks: list[str], innocents: list[str]) -> str:
    of_leaks, of_innocents = len(called.intersection(leaks)), len(called.intersection(innocents))
    return f"{of_leaks} of {len(leaks)} leaks; {of_innocents} of {len(innocents)} innocents"


def resident(folder: Path) -> tuple[list[float], list[float]]:
    """Seconds since the start, and MB resident in the main process, as the recording has them."""
    (recording,) = folder.glob("*.hightide")
    text = must(run([HIGHTIDE, "export", recording, "--csv"])).stdout
    times, values = [], []
    for row in csv.DictReader(io.StringIO(text)):
        if row["process"] == "1" and row["series"] == "host.rss":
            times.append(int(row["time_ns"]) / 1e9)
            values.append(int(row["value"]) / 1e6)
    return times, values


def thinned(
    times: list[float], values: list[float], interval: float, warm_up: float
) -> tuple[list[float], list[float]]:
    """One reading each interval, from the end of the warm-up on."""
    if not times:
        return [], []
    due = times[0] + warm_up * (times[-1] - times[0])
    kept: tuple[list[float], list[float]] = ([], [])
    for time, value in zip(times, values):
        if time >= due:
            kept[0].append(time)
            kept[1].append(value)
            due = max(due + interval, time + interval / 2)
    return kept


def detect(series: dict[str, tuple[list[float], list[float]]]) -> dict[str, dict[str, list[str]]]:
    done = subprocess.run(
        [STORMLOG, "-c", DETECT], input=json.dumps(series), capture_output=True, text=True, check=True, cwd="/"
    )
    found: dict[str, dict[str, list[str]]] = json.loads(done.stdout)
    return found
