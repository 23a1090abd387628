"""Opening large allocator snapshots: time and memory against Python's pickle.load on the same file.

    python bench/snapshot.py            1 GB files of both kinds, protocols 2, 4 and 5
    python bench/snapshot.py --quick    one tenth of that

hightide opens the file and reports its peak (explain --brief; all that explain has to say takes longer,
which is timed once beside it); Python only loads it, with its garbage
collector on and off. RSS is the kernel's maximum, mapped pages included. Cost is linear if a file of
half the size takes half the time. Real files of a few MB are timed from process start.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from common import BENCH, HIGHTIDE, ROOT, Done, MiB, Row, exit_code, must, publish, run

LOAD = "import gc, os, pickle, sys\n{}with open(sys.argv[1], 'rb') as f: s = pickle.load(f)\nos._exit(0)"


def open_and_report(file: Path, folder: Path) -> Done:
    return must(run([HIGHTIDE, "explain", file, "--brief", f"--markdown={folder / 'peak.md'}"]))


def explain(file: Path, folder: Path) -> Done:
    return must(run([HIGHTIDE, "explain", file, f"--json={folder / 'report.json'}"]))


def load(file: Path, collect: bool) -> Done:
    return must(run([sys.executable, "-c", LOAD.format("" if collect else "gc.disable()\n"), file]))


def best(runs: list[Done]) -> Done:
    return min(runs, key=lambda done: done.wall)


def measure(kind: str, protocol: int, megabytes: int, rounds: int, folder: Path) -> tuple[list[Row], dict[str, float]]:
    """One kind of file: the fastest of a few rounds of each, which is what a quiet machine shows."""
    sizes = {}
    for part, size in (("whole", megabytes), ("half", megabytes // 2)):
        sizes[part] = folder / f"{part}.pickle"
        must(run([sys.executable, BENCH / "snapshot_files.py", kind, size, sizes[part], "--protocol", protocol]))
    ours = best([open_and_report(sizes["whole"], folder) for _ in range(rounds)])
    half = best([open_and_report(sizes["half"], folder) for _ in range(rounds)])
    whole = explain(sizes["whole"], folder)
    collected, plain = load(sizes["whole"], True), best([load(sizes["whole"], False) for _ in range(2)])
    mega = sizes["whole"].stat().st_size / 1e6
    growth = (ours.cpu / half.cpu) / (mega / (sizes["half"].stat().st_size / 1e6))
    what = f"{kind}, protocol {protocol}, {mega:.0f} MB"
    rows = [
        Row(
            f"{what}: pickle.load over open and peak",
            f"{collected.wall / ours.wall:.1f} ({collected.wall:.1f} s, {ours.wall:.2f} s; CPU {collected.cpu / ours.cpu:.1f})",
            ">= 15",
            collected.wall / ours.wall >= 15,
        ),
        Row(
            f"{what}: the same without garbage collector",
            f"{plain.wall / ours.wall:.1f} ({plain.wall:.1f} s; CPU {plain.cpu / ours.cpu:.1f})",
            ">= 6",
            plain.wall / ours.wall >= 6,
        ),
        Row(
            f"{what}: its maximum RSS over ours",
            f"{plain.maxrss / ours.maxrss:.1f} ({plain.maxrss / MiB:.0f}, {ours.maxrss / MiB:.0f} MiB)",
            ">= 7",
            plain.maxrss / ours.maxrss >= 7,
        ),
        Row(f"{what}: CPU over that of half the file", f"{growth:.2f} of linear", "<= 1.25", growth <= 1.25),
    ]
    raw = {
        "bytes": mega * 1e6, "hightide_s": ours.wall, "hightide_cpu_s": ours.cpu, "hightide_rss": ours.maxrss,
        "pickle_s": collected.wall, "pickle_cpu_s": collected.cpu, "pickle_rss": plain.maxrss,
        "explain_s": whole.wall, "explain_cpu_s": whole.cpu, "explain_rss": whole.maxrss,
        "pickle_no_gc_s": plain.wall, "pickle_no_gc_cpu_s": plain.cpu, "half_cpu_s": half.cpu,
    }  # fmt: skip
    return rows, raw


def small(folder: Path) -> tuple[list[Row], dict[str, float]]:
    rows, raw = [], {}
    for file in sorted((ROOT / "testdata" / "real").glob("*.pickle")):
        wall = statistics.median(must(run([HIGHTIDE, "explain", file])).wall for _ in range(15))
        rows.append(
            Row(f"{file.name}, from process start to the report", f"{wall * 1000:.0f} ms", "<= 50 ms", wall <= 0.05)
        )
        everything = statistics.median(explain(file, folder).wall for _ in range(15))
        rows.append(Row("  and as JSON, with pictures and timelines", f"{everything * 1000:.0f} ms"))
        raw[file.name] = wall
    return rows, raw


def main() -> int:
    parser = argparse.ArgumentParser(description="Time and memory of opening large snapshots.")
    parser.add_argument("--quick", action="store_true", help="files of a tenth, one protocol")
    parser.add_argument("--megabytes", type=int, help="size of the files (default 1070)")
    options = parser.parse_args()
    size = options.megabytes or (107 if options.quick else 1070)
    cases = [("repetitive", 4), ("distinct", 2)]
    if not options.quick:
        cases = [("repetitive", 2), ("repetitive", 4), ("repetitive", 5), ("distinct", 4)]
    rows: list[Row] = []
    raw: dict[str, dict[str, float]] = {}
    for kind, protocol in cases:
        with tempfile.TemporaryDirectory() as name:
            more, figures = measure(kind, protocol, size, 3, Path(name))
        rows += more
        raw[f"{kind}-{protocol}"] = figures
    with tempfile.TemporaryDirectory() as name:
        more, raw["small"] = small(Path(name))
    rows += more
    publish("snapshot", rows, raw)
    return exit_code(rows)


if __name__ == "__main__":
    sys.exit(main())
