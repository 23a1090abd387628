"""Whether commands became slower: this build and that of another commit, in turns on the same machine.

    python bench/commands.py REF [--rounds 15] [--only run explain] [--quick]      or: make bench-beside REF=COMMIT

REF is built in a worktree in a temporary folder; this build is bin/hightide as `make build` left it. Each round runs
every command once with each build, in random order. Ratios are taken within a round: of elapsed time, and of processor
time of all its processes, which other work of the machine changes less. A ratio is the median over the rounds, its
interval holds in 90 of 100 such measurements. A command is slower if either ratio is above 1.05 and its whole interval
above 1: then this ends with 1. So does a binary that is larger by as much. What a build cannot do has no ratio.
Snapshots are the same file for both; recordings and the list of 1,000 runs are each build's own.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from common import BENCH, HIGHTIDE, PYTHON, ROOT, Done, Interval, MiB, Row, exit_code, must, publish, run, token_of

BAR = 1.05
RUNS = 1000  # that are listed
PAGES = 20  # requests of a turn: one is too short for the kernel's count of processor time
SNAPSHOT = ROOT / "testdata" / "real" / "h100-lm-ctx128-train-step.pickle"
OTHER = ROOT / "testdata" / "real" / "h100-lm-ctx256-forward-bf16.pickle"
GPT = ROOT / "examples" / "gpt.py"


@dataclass
class Build:
    """One of the two: its binary, a folder for what it writes, and its server where it has one."""

    name: str
    tree: Path
    binary: Path
    folder: Path
    server: subprocess.Popen[str] | None = None
    address: str = ""
    cannot: set[str] = field(default_factory=set)  # commands that it does not have, or that fail

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def env(self) -> dict[str, str]:
        return {"HIGHTIDE_DATA": str(self.data)}

    def run(self, *command: object) -> Done:
        return run([self.binary, *command], self.env, self.folder)


@dataclass
class Command:
    """What is measured: by its name, what it does with a build, and what comes before the first time."""

    name: str
    do: Callable[[Build], Done]
    prepare: Callable[[Build], None] = lambda build: None


def flags(*words: object) -> Callable[[Build], Done]:
    return lambda build: build.run(*words)


def commands(large: Path) -> list[Command]:
    """In the order of the table. A name in --only is the first word of one of these."""
    return [
        Command("start: version", flags("version")),
        Command("run: python -c pass", flags("run", "--quiet", "--", sys.executable, "-c", "pass")),
        Command("imagine: a GPT on an H100", flags("imagine", "--quiet", "--gpu", "h100-sxm", "--", PYTHON, GPT)),
        Command("fit: bert on an A10", flags("fit", "--quiet", "--gpu", "a10", "--model", "bert", "--step", "8")),
        Command("explain: 19,770 events", flags("explain", SNAPSHOT)),
        Command("explain: the large file", flags("explain", large)),
        Command("diff: two snapshots", flags("diff", SNAPSHOT, OTHER)),
        Command("export: a flame graph's stacks", flags("export", SNAPSHOT, "--folded", "out.folded")),
        Command("replay: 19,770 events", flags("replay", SNAPSHOT)),
        Command("search: settings for them", flags("replay", SNAPSHOT, "--search")),
        Command("report: an hour of 8 processes", report, record_hour),
        Command("ls: 1,000 runs", flags("ls", "--limit", RUNS), make_runs),
        Command("page: the list, 20 times", pages, serve),
    ]


def built(ref: str, folder: Path) -> Build:
    """The commit in a worktree of its own, which remove_worktree takes away."""
    tree = folder / "tree"
    must(run(["git", "worktree", "add", "--detach", tree, ref], cwd=ROOT))
    print(f"building {ref}", file=sys.stderr)
    must(run(["make", "heap", "device", "web", "binary"], cwd=tree))
    return Build(ref, tree, tree / "bin" / "hightide", made(folder / "ref"))


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def record_hour(build: Build) -> None:
    folder = build.folder / "hour"
    must(run(["go", "test", "-count=1", "-run", "^TestHour$", "./bench"],
             {"HIGHTIDE_HOUR": str(folder), "CGO_ENABLED": "0"}, build.tree))  # fmt: skip


def report(build: Build) -> Done:
    (file,) = (build.folder / "hour").glob("runs/*/run.hightide")
    return build.run("report", file, "--html", "report.html")


def make_runs(build: Build) -> None:
    """One recording, as often as is wanted, under names of its kind."""
    must(build.run("run", "--quiet", "--name", "first", "--", sys.executable, "-c", "pass"))
    first = max((build.data / "runs").iterdir(), key=lambda path: path.stat().st_mtime)
    for number in range(RUNS):
        shutil.copytree(first, first.parent / f"{first.name[:-4]}{number:04d}", dirs_exist_ok=True)
    must(build.run("reindex"))


def serve(build: Build) -> None:
    build.server = subprocess.Popen(
        [build.binary, "ui", "--addr", "127.0.0.1:0"],
        env={**os.environ, **build.env},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert build.server.stderr
    found = re.search(r"http://([^/\s]+)/", build.server.stderr.readline())
    if not found:
        raise OSError("the server did not begin")
    build.address = found[1]
    file = build.data / "ui" / f"server-{build.address.rpartition(':')[2]}.json"
    for _ in range(600):  # its token comes a moment after its address
        if file.exists():
            return
        time.sleep(0.1)
    raise OSError(f"{file} did not come")


def pages(build: Build) -> Done:
    """The list of runs, as the page asks for it."""
    assert build.server
    token = token_of(build.data, build.address)
    before, begin = spent(build.server.pid), time.perf_counter()
    for _ in range(PAGES):
        request = urllib.request.Request(
            f"http://{build.address}/api/v1/runs?limit=100", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(request) as answer:
            answer.read()
    wall = time.perf_counter() - begin
    return Done(wall, spent(build.server.pid) - before, 0, "", "", 0)


def spent(pid: int) -> float:
    """Seconds of processor time of a process and its threads, to the nanosecond."""
    return sum(int(task.read_text().split()[0]) for task in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def prepared(command: Command, builds: Sequence[Build]) -> None:
    """Prepares both builds, and runs the command once: files are in memory then, and helpers unpacked."""
    for build in builds:
        try:
            command.prepare(build)
            done = command.do(build)
            failed = done.stderr if done.code else ""
        except (OSError, SystemExit, ValueError) as problem:
            failed = str(problem)
        if failed:
            build.cannot.add(command.name)
            print(f"{build.name} cannot do {command.name}: {failed.strip()[:300]}", file=sys.stderr)


def measured(todo: Sequence[Command], builds: Sequence[Build], rounds: int) -> dict[str, list[dict[str, Done]]]:
    """By command the rounds, each by build. What takes seconds is run in half of them."""
    found: dict[str, list[dict[str, Done]]] = {command.name: [] for command in todo}
    shuffle = random.Random(1)
    for number in range(rounds):
        for command in todo:
            earlier = found[command.name]
            if number % 2 and earlier and max(done.wall for done in earlier[0].values()) > 1:
                continue
            order = list(builds)
            shuffle.shuffle(order)
            earlier.append({build.name: command.do(build) for build in order})
        print(f"\r  round {number + 1} of {rounds}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def median_ratio(values: Sequence[float]) -> Interval:
    """The median, and the bounds of it that a bootstrap over the rounds gives."""
    random_ = random.Random(7)
    medians = sorted(statistics.median(random_.choices(values, k=len(values))) for _ in range(4000))
    return Interval(statistics.median(values), medians[200], medians[3800])


def row(name: str, rounds: Sequence[dict[str, Done]], this: str, other: str) -> Row:
    ratios = {
        kind: median_ratio([getattr(done[this], kind) / max(getattr(done[other], kind), 1e-9) for done in rounds])
        for kind in ("wall", "cpu")
    }
    figures = []
    for kind, ratio in ratios.items():
        was, now = (statistics.median(getattr(done[build], kind) for done in rounds) * 1000 for build in (other, this))
        figures.append(f"{ratio.text(2)} ({was:,.1f} to {now:,.1f} ms)")
    memory = [max(done[build].maxrss for done in rounds) / MiB for build in (other, this)]
    if all(memory):
        figures.append(f"{memory[0]:.0f} to {memory[1]:.0f} MiB")
    slower = any(ratio.mean > BAR and ratio.low > 1 for ratio in ratios.values())
    return Row(name, "; ".join(figures), f"<= {BAR}", not slower)


def table(found: dict[str, list[dict[str, Done]]], builds: Sequence[Build]) -> list[Row]:
    this, other = builds
    sizes = [build.binary.stat().st_size / 1e6 for build in (other, this)]
    rows = [Row("the binary", f"{sizes[1] / sizes[0]:.2f} ({sizes[0]:.1f} to {sizes[1]:.1f} MB)", f"<= {BAR}",
                sizes[1] <= BAR * sizes[0])]  # fmt: skip
    for name, rounds in found.items():
        without = [build.name for build in builds if name in build.cannot]
        if without:
            rows.append(Row(name, f"not compared: {' and '.join(without)} cannot do it"))
        else:
            rows.append(row(name, rounds, this.name, other.name))
    return rows


def large_file(folder: Path, megabytes: int) -> Path:
    file = folder / "large.pickle"
    must(run([sys.executable, BENCH / "snapshot_files.py", "repetitive", megabytes, file, "--protocol", "2"]))
    return file


def compare(options: argparse.Namespace, folder: Path) -> list[Row]:
    builds = [Build("this", ROOT, HIGHTIDE, made(folder / "this")), built(options.ref, folder)]
    todo = [
        command
        for command in commands(large_file(folder, 50 if options.quick else options.megabytes))
        if not options.only or command.name.partition(":")[0] in options.only
    ]
    try:
        for command in todo:
            prepared(command, builds)
        able = [command for command in todo if not any(command.name in build.cannot for build in builds)]
        found = measured(able, builds, 3 if options.quick else options.rounds)
    finally:
        for build in builds:
            if build.server:
                build.server.kill()
                build.server.wait()
    rows = table({command.name: found.get(command.name, []) for command in todo}, builds)
    raw = {name: [{build: [done.wall, done.cpu, done.maxrss] for build, done in turn.items()} for turn in rounds]
           for name, rounds in found.items()}  # fmt: skip
    print(f"ratios of this build to {options.ref}: elapsed time; processor time; most memory of one process")
    publish("commands", rows, raw)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare this build with that of another commit.")
    parser.add_argument("ref", help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--megabytes", type=int, default=1000, help="of the large snapshot")
    parser.add_argument("--only", nargs="*", default=[], help="first words of the commands to measure")
    parser.add_argument("--quick", action="store_true", help="three rounds and a file of 50 MB")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hightide-beside-") as name:
        try:
            rows = compare(options, Path(name))
        finally:
            run(["git", "worktree", "remove", "--force", Path(name) / "tree"], cwd=ROOT)
    return exit_code(rows)


if __name__ == "__main__":
    sys.exit(main())
