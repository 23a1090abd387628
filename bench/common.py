"""What the measurements share: running programs with and without hightide, and honest statistics.

Each script here measures one bar, prints a table, and leaves its figures in bench/results/NAME.json:

    python bench/overhead.py            the whole measurement
    python bench/overhead.py --quick    the same in a minute, to see that it works; figures are rough
"""

from __future__ import annotations

import json
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "scripts"))
from torchversions import CACHE as CACHE
from torchversions import NEWEST, python
from torchversions import ROOT as ROOT

BENCH = ROOT / "bench"
RESULTS = BENCH / "results"
HIGHTIDE = Path(os.environ.get("HIGHTIDE_BINARY", ROOT / "bin" / "hightide"))
PYTHON = python(NEWEST)
PROFILERS = CACHE / "bench" / "bin" / "python"  # has memray and scalene

MiB = 1 << 20
KiB = 1 << 10


@dataclass
class Done:
    """One finished command: wall and CPU seconds of its whole tree, its largest process, its output."""

    wall: float
    cpu: float
    maxrss: int
    stdout: str
    stderr: str
    code: int


def token_of(data: Path, address: str) -> str:
    """What a server that serves a data directory asks of programs; its address, or its host:port."""
    port = re.findall(r":(\d+)", address)[-1]
    return str(json.loads((data / "ui" / f"server-{port}.json").read_text())["token"])


def run(command: Sequence[object], env: dict[str, str] | None = None, cwd: Path | None = None) -> Done:
    """Run a command; CPU and maximum RSS are the kernel's, of all processes that were waited for."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.perf_counter()
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=cwd, env={**os.environ, **(env or {})},
        )  # fmt: skip
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        return Done(
            wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * KiB,
            out.read().decode(errors="replace"), err.read().decode(errors="replace"), process.returncode,
        )  # fmt: skip


def must(done: Done) -> Done:
    if done.code:
        sys.exit(f"a measured program ended with {done.code}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done


class Recordings:
    """A data directory that goes away, so that measuring leaves nothing in the user's."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hightide-bench-")
        self.path = Path(self._folder.name)

    def command(self, *flags: object) -> list[str]:
        return [str(w) for w in (HIGHTIDE, "run", "--data-dir", self.path, "--quiet", *flags, "--")]

    def record(self, command: Sequence[object], *flags: object, env: dict[str, str] | None = None) -> dict[str, Any]:
        """Record a command and return what `run --json` says."""
        file = self.path / "result.json"
        must(run([*self.command(f"--json={file}", *flags), *command], env))
        summary: dict[str, Any] = json.loads(file.read_text())
        return summary

    def report(self, recording: object = "last") -> dict[str, Any]:
        done = must(run([HIGHTIDE, "report", recording, "--data-dir", self.path, "--json"]))
        report: dict[str, Any] = json.loads(done.stdout)
        return report


def interleaved(pairs: int, measure: Mapping[str, Callable[[], Done]]) -> dict[str, list[Done]]:
    """Run every variant once per round, in a fresh random order, so that drift hits all alike."""
    found: dict[str, list[Done]] = {name: [] for name in measure}
    order = list(measure)
    shuffle = random.Random(1)
    for number in range(pairs):
        shuffle.shuffle(order)
        for name in order:
            found[name].append(measure[name]())
        print(f"\r  round {number + 1} of {pairs}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


@dataclass
class Interval:
    """A mean with the bounds that hold in 95 of 100 such measurements (bootstrap over the pairs)."""

    mean: float
    low: float
    high: float

    def text(self, digits: int = 3) -> str:
        return f"{self.mean:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


def bootstrap(values: Sequence[float], rounds: int = 10_000) -> Interval:
    """Interval of the mean; low is the lower 95 % bound and high the upper one, each one-sided."""
    random_ = random.Random(7)
    means = sorted(statistics.fmean(random_.choices(values, k=len(values))) for _ in range(rounds))
    return Interval(statistics.fmean(values), means[int(0.05 * rounds)], means[int(0.95 * rounds)])


def ratios(with_: Sequence[float], without: Sequence[float]) -> Interval:
    return bootstrap([a / b for a, b in zip(with_, without, strict=True)])


@dataclass
class Row:
    """One figure against its bar; ok is None where there is no bar."""

    what: str
    figure: str
    bar: str = ""
    ok: bool | None = None


def publish(name: str, rows: list[Row], raw: object) -> None:
    """Print the rows, and leave them with the raw figures in bench/results."""
    show(rows)
    RESULTS.mkdir(exist_ok=True)
    text = {
        "command": " ".join(["python", *sys.argv]),
        "machine": machine(),
        "rows": [vars(row) for row in rows],
        "raw": raw,
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(text, indent=1) + "\n")


def show(rows: list[Row]) -> None:
    """Print the rows."""
    width = max(len(row.what) for row in rows)
    for row in rows:
        verdict = "" if row.ok is None else "ok" if row.ok else "MISSED"
        print(f"  {row.what:{width}}  {row.figure:32} {row.bar:14} {verdict}".rstrip())


def machine() -> dict[str, object]:
    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpu": model, "cores": os.cpu_count(), "memory_bytes": memory, "kernel": platform.release()}


def exit_code(rows: list[Row]) -> int:
    return 1 if any(row.ok is False for row in rows) else 0
