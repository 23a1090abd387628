"""Replay: pairs of allocation and free a second, the time of a search, and the model against PyTorch.

    python bench/replay.py [--quick] [--oracle] [--programs N]

The Go side is bench/replay_test.go. The oracle plays N programs (10,000) for each PyTorch at hand; how many of them had each
setting is listed. --oracle leaves the rest out.
"""

from __future__ import annotations

import argparse
import re
import sys

from common import ROOT, Row, exit_code, must, publish, run


def benchmark(name: str, times: str, cores: int = 0) -> dict[str, float]:
    """The figures of a Go benchmark by their units."""
    env = {"CGO_ENABLED": "0"} | ({"GOMAXPROCS": str(cores)} if cores else {})
    output = must(run(["go", "test", "-run", "^$", "-bench", name, "-benchtime", times, "./bench"], env, ROOT)).stdout
    line = next((line for line in output.splitlines() if line.startswith("Benchmark")), "")
    found = {unit: float(value) for value, unit in re.findall(r"([\d.e+]+) ([A-Za-z][\w./-]*)", line)}
    if not found:
        sys.exit(f"no figure in {output}")
    return found


def speed(quick: bool) -> tuple[list[Row], object]:
    pairs = benchmark("ReplayPairs", "1000000x" if quick else "10000000x", cores=1)
    free = f"{pairs['free-blocks']:,.0f} free blocks"
    rate = pairs["undisturbed-Mpairs/s"]
    search = benchmark("ReplaySearch", "1x" if quick else "5x")
    took = f"{search['seconds']:.2f} s for {search['settings']:.0f} settings, {search['events']:,.0f} events"
    rows = [
        Row(f"pairs a second on one core, {free}", f"{rate:.2f} million", ">= 3 million", rate >= 3),
        Row("  median of all slices, interrupted ones too", f"{pairs['median-Mpairs/s']:.2f} million"),
        Row("a search", took, "<= 5 s, >= 50 settings", search["seconds"] <= 5 and search["settings"] >= 50),
    ]
    return rows, {"pairs": pairs, "search": search}


def memory() -> Row:
    done = run(["go", "test", "-count=1", "-run", "^TestReplayMemory$", "./bench"], {"CGO_ENABLED": "0"}, ROOT)
    return Row(
        "memory held after two million pairs more",
        "the same" if done.code == 0 else done.stdout,
        "the same",
        done.code == 0,
    )


def oracle(programs: int) -> list[Row]:
    """The model against every PyTorch at hand, and how many programs had each setting and condition."""
    command = ["go", "test", "-count=1", "-v", "-timeout", "6h", "-run", "^TestOracle$", "./internal/allocator"]
    done = run(command, {"HIGHTIDE_ORACLE_PROGRAMS": str(programs)}, ROOT)
    rows = []
    had: dict[str, dict[str, int]] = {}
    parts = re.split(r"(torch-\S+): (\d+) programs, (\d+) events, (\d+) mismatches", done.stdout)[1:]
    for torch, count, events, differ, part in zip(*(parts[i::5] for i in range(5))):
        text = f"{differ} mismatches in {int(count):,} programs, {int(events):,} events"
        rows.append(Row(f"the model against {torch}", text, "0", differ == "0" and int(count) == programs))
        for what, number in re.findall(r"^ +with (.+?) +(\d+)$", part, re.MULTILINE):
            had.setdefault(what, {})[torch] = int(number)
    if not rows:
        return [Row("the model against a PyTorch", "did not run", "0", False)]
    versions = list(had["own process"])  # which every version has
    rows.append(Row("programs with each setting and condition", "  ".join(versions)))
    for what in sorted(had):
        rows.append(Row(f"  {what}", "  ".join(f"{had[what].get(torch, 0):>{len(torch)},}" for torch in versions)))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--programs", type=int, help="for each PyTorch")
    parser.add_argument("--oracle", action="store_true", help="only hold the model against PyTorch")
    options = parser.parse_args()
    rows, raw = ([], {}) if options.oracle else speed(options.quick)
    rows += [] if options.oracle else [memory()]
    rows += oracle(options.programs or (150 if options.quick else 10_000))
    publish("oracle" if options.oracle else "replay", rows, raw)
    return exit_code(rows)


if __name__ == "__main__":
    sys.exit(main())
