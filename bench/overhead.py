"""What recording costs: time of the loop, CPU of the whole tree, time added to starting up.

    python bench/overhead.py [--quick] [--pairs 15] [--seconds 10] [--part loop|pinned|mallocs|startup]

Every round runs all variants in random order; a ratio is taken within its round, and the bound is
the upper 95 % one of a bootstrap over the rounds. memray and scalene stand beside for scale.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from common import (
    BENCH,
    HIGHTIDE,
    PROFILERS,
    PYTHON,
    Done,
    Interval,
    Recordings,
    Row,
    bootstrap,
    exit_code,
    interleaved,
    must,
    publish,
    ratios,
    run,
)

LOOP = BENCH / "programs" / "loop.py"
MALLOCS = BENCH / "programs" / "mallocs.py"


def loop_seconds(runs: list[Done]) -> list[float]:
    """The seconds that the measured loop took by its own clock."""
    return [float(done.stdout.split()[0]) for done in runs]


def cpu_seconds(runs: list[Done]) -> list[float]:
    return [done.cpu for done in runs]


def bounded(what: str, value: Interval, bar: float) -> Row:
    return Row(what, value.text(), f"<= {bar:.2f}", value.high <= bar)


def succeed(command: list[str]) -> Done:
    return must(run(command))


def variants(program: Path, seconds: float, prefix: list[str], data: Recordings) -> dict[str, Callable[[], Done]]:
    plain = [str(PYTHON), str(program), str(seconds)]
    return {
        "plain": partial(succeed, [*prefix, *plain]),
        "default": partial(succeed, [*prefix, *data.command(), *plain]),
        "no-stacks": partial(succeed, [*prefix, *data.command("--no-stacks"), *plain]),
    }


def loop(pairs: int, seconds: float) -> tuple[list[Row], object]:
    """The CPU-bound training: its own time, and the CPU of everything, the engine included."""
    data = Recordings()
    runs = interleaved(pairs, variants(LOOP, seconds, [], data))
    rows = []
    for name, bar in (("default", 1.02), ("no-stacks", 1.01)):
        time = ratios(loop_seconds(runs[name]), loop_seconds(runs["plain"]))
        rows.append(bounded(f"training loop, {name}", time, bar))
    cpu = ratios(cpu_seconds(runs["default"]), cpu_seconds(runs["plain"]))
    rows.append(bounded("CPU of the tree with the engine, default", cpu, 1.03))
    return rows, {name: [[float(d.stdout.split()[0]), d.cpu] for d in done] for name, done in runs.items()}


def pinned(pairs: int, seconds: float) -> tuple[list[Row], object]:
    """The same with the training and the engine sharing one core."""
    runs = interleaved(pairs, variants(LOOP, seconds, ["taskset", "-c", "0"], Recordings()))
    rows = []
    for name, bar in (("default", 1.02), ("no-stacks", 1.01)):
        time = ratios(loop_seconds(runs[name]), loop_seconds(runs["plain"]))
        rows.append(bounded(f"training loop on one core, {name}", time, bar))
    cpu = ratios(cpu_seconds(runs["default"]), cpu_seconds(runs["plain"]))
    rows.append(bounded("CPU of the tree on one core, default", cpu, 1.03))
    return rows, {name: [[float(d.stdout.split()[0]), d.cpu] for d in done] for name, done in runs.items()}


def mallocs(pairs: int, seconds: float) -> tuple[list[Row], object]:
    runs = interleaved(pairs, variants(MALLOCS, seconds, [], Recordings()))
    rate = bootstrap([float(done.stdout.split()[1]) for done in runs["plain"]])
    rows = [
        bounded(
            "million mallocs a second, default",
            ratios(loop_seconds(runs["default"]), loop_seconds(runs["plain"])),
            1.10,
        )
    ]
    rows.append(Row("  rate of that loop without hightide", f"{rate.mean / 1e6:.2f} million/s"))
    cpu = ratios(cpu_seconds(runs["default"]), cpu_seconds(runs["plain"]))
    rows.append(Row("  CPU of the tree in it, default", cpu.text()))
    return rows, {name: [[float(d.stdout.split()[0]), d.cpu] for d in done] for name, done in runs.items()}


def others(pairs: int, seconds: float) -> tuple[list[Row], object]:
    """memray and scalene on both loops, for scale; no bars."""
    if not PROFILERS.exists():
        return [Row("memray, scalene", "not installed: scripts/setup bench")], None
    rows: list[Row] = []
    raw: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for program in (LOOP, MALLOCS):
            python, words = str(PROFILERS), [str(program), str(seconds)]
            commands = {
                "plain": [python, *words],
                "memray": [python, "-m", "memray", "run", "-q", "-f", "-o", f"{folder}/m.bin", *words],
                "memray --native": [
                    python,
                    "-m",
                    "memray",
                    "run",
                    "-q",
                    "-f",
                    "--native",
                    "-o",
                    f"{folder}/m.bin",
                    *words,
                ],
                "scalene": [python, "-m", "scalene", "run", "-o", f"{folder}/s.json", *words],
            }
            limit = ["timeout", "--kill-after=5", str(int(10 * seconds + 60))]  # scalene was seen to hang here
            measure = {name: partial(run, [*limit, *command]) for name, command in commands.items()}
            runs = interleaved(pairs, measure)
            for name in list(commands)[1:]:
                if any(done.code or not done.stdout.strip() for done in runs[name]):
                    why = (
                        "did not end in time"
                        if 124 in [d.code for d in runs[name]]
                        else runs[name][0].stderr.strip()[-80:]
                    )
                    rows.append(Row(f"{program.stem}, {name}", f"no figure: {why}"))
                    continue
                times = [seconds_in(done) for done in runs[name]]
                rows.append(Row(f"{program.stem}, {name}", ratios(times, loop_seconds(runs["plain"])).text()))
                raw.setdefault(program.stem, {})[name] = times
    return rows, raw


def seconds_in(done: Done) -> float:
    """The loop's seconds, from the first line that is a number (profilers print around it)."""
    for line in done.stdout.splitlines():
        try:
            return float(line.split()[0])
        except (ValueError, IndexError):
            continue
    raise ValueError(f"no time in {done.stdout!r}")


def startup(pairs: int, _: float) -> tuple[list[Row], object]:
    """Wall time that `hightide run` adds to starting Python, from the shell's point of view, and processor
    time of everything: that one scatters less, and shows what another core hides."""
    rows, raw = [], {}
    for what, code, rounds, bar in (
        ("python -c pass", "pass", 3 * pairs, 60),
        ("import torch", "import torch", 2 * pairs, 150),
    ):
        data = Recordings()
        plain = [str(PYTHON), "-c", code]
        recorded = [*data.command(), *plain]
        runs = interleaved(rounds, {"plain": partial(succeed, plain), "run": partial(succeed, recorded)})
        added = bootstrap([1000 * (a.wall - b.wall) for a, b in zip(runs["run"], runs["plain"], strict=True)])
        rows.append(Row(f"added to {what}", f"{added.text(0)} ms", f"<= {bar} ms", added.high <= bar))
        cpu = bootstrap([1000 * (a.cpu - b.cpu) for a, b in zip(runs["run"], runs["plain"], strict=True)])
        rows.append(Row(f"  its processor time, {what}", f"{cpu.text(0)} ms"))
        raw[what] = {name: [[done.wall, done.cpu] for done in found] for name, found in runs.items()}
    return rows, raw


PARTS = {"loop": loop, "pinned": pinned, "mallocs": mallocs, "startup": startup, "others": others}


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure what recording costs.")
    parser.add_argument("--quick", action="store_true", help="3 rounds of 2 s: rough")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--part", nargs="+", choices=list(PARTS), default=list(PARTS))
    options = parser.parse_args()
    if not HIGHTIDE.exists():
        sys.exit(f"{HIGHTIDE} is not built: make build")
    pairs, seconds = (3, 2.0) if options.quick else (options.pairs, options.seconds)
    rows: list[Row] = []
    raw = {}
    for name in options.part:
        print(f"{name}:", file=sys.stderr)
        fewer = max(3, pairs // 3) if name == "others" else pairs
        found, raw[name] = PARTS[name](fewer, seconds)
        rows += found
    publish("overhead", rows, raw)
    return exit_code(rows)


if __name__ == "__main__":
    sys.exit(main())
