"""Is the imaginary GPU the same every time, and the same as a real one?

    python bench/fidelity.py                     every workload twice on an imaginary GPU: the same events both times?
    python bench/fidelity.py --small --only gan  some of them, in sizes that take seconds
    python bench/fidelity.py --real              with a CUDA device at hand: on it and on its imaginary twin, event by
                                                 event; recordings go to testdata/real/fidelity
    python bench/fidelity.py --compare A B       two recordings of record.py, or two of PyTorch's own snapshots

A workload is a training script in bench/fidelity/workloads that knows nothing of hightide; comments in its head say
what it needs (# gpu: h200, # ranks: 2, # environment: NAME=VALUE). Needs scripts/setup torch fidelity, and bin/hightide.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import CACHE, HIGHTIDE, RESULTS, ROOT, Row, exit_code, publish

sys.path.insert(0, str(Path(__file__).resolve().parent / "fidelity"))
from traces import Trace, compare, load, same_places

FOLDER = ROOT / "bench" / "fidelity"
WORKLOADS = FOLDER / "workloads"
SHARED = ("scale", "transformer")  # what workloads import
REAL = ROOT / "testdata" / "real" / "fidelity"
PYTHON = CACHE / "fidelity" / "bin" / "python"
GIB = 1 << 30
DEVICE_BAR = 0.02  # of the device's used memory, where a real one is compared


@dataclass
class Workload:
    """One script, and what it says that it needs."""

    name: str
    what: str
    path: Path
    gpu: str = "a10"
    ranks: int = 1
    environment: dict[str, str] = field(default_factory=dict)


def workloads(only: list[str]) -> list[Workload]:
    """All workloads, or those that are named."""
    found = []
    for path in sorted(WORKLOADS.glob("*.py")):
        if path.stem in SHARED or only and path.stem not in only:
            continue
        text = path.read_text()
        workload = Workload(path.stem, text.split('"""')[1].split("\n")[0].rstrip("."), path)
        for name, value in re.findall(r"^# (gpu|ranks|environment): (.*)$", text, re.MULTILINE):
            if name == "environment":
                workload.environment = dict(word.split("=", 1) for word in value.split())
            else:
                setattr(workload, name, int(value) if name == "ranks" else value)
        found.append(workload)
    if missing := set(only) - {w.name for w in found}:
        sys.exit(f"no such workload: {', '.join(sorted(missing))}")
    return found


@dataclass
class Recording:
    """What one workload left, a trace for each device of each rank."""

    traces: list[Trace]
    failed: str = ""

    @property
    def used(self) -> int:
        return max((trace.used or 0 for trace in self.traces), default=0)


class Group:
    """Workloads that can run one after the other in one process: its start is most of the time."""

    def __init__(self, members: list[Workload]) -> None:
        self.members, self.first = members, members[0]

    def command(self, python: Path, out: Path) -> list[str]:
        words = [str(python)]
        if self.first.ranks > 1:
            words += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={self.first.ranks}"]
        return [*words, str(FOLDER / "record.py"), str(out), *(str(member.path) for member in self.members)]

    def run(self, before: list[str], python: Path, small: bool, keep: Path | None = None) -> dict[str, Recording]:
        """Run all members once with hightide's words before their command."""
        with tempfile.TemporaryDirectory(prefix="hightide-fidelity-") as name:
            folder = Path(name)
            (folder / "traces").mkdir()
            command = [
                str(HIGHTIDE),
                *before,
                "--quiet",
                f"--json={folder / 'result'}",
                "--data-dir",
                str(folder / "runs"),
            ]
            environment = {**os.environ, **self.first.environment, "FIDELITY_SMALL": "1" if small else "0"}
            # Inductor measures kernels it has not compiled before, on the device: each run begins with empty caches.
            environment |= {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor", "TRITON_CACHE_DIR": f"{folder}/triton"}
            done = subprocess.run(
                [*command, "--", *self.command(python, folder / "traces")], env=environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            )  # fmt: skip
            words = f"exit code {done.returncode}\n{done.stdout[-3000:]}"
            return {member.name: self.read(folder / "traces", member.name, words, keep) for member in self.members}

    def read(self, folder: Path, name: str, words: str, keep: Path | None) -> Recording:
        files = sorted([*folder.glob(f"{name}.json"), *folder.glob(f"{name}.rank*.json")])
        if len(files) < self.first.ranks:
            return Recording([], words)
        failed = [text for file in files if (text := json.loads(file.read_text())["failed"])]
        if keep and not failed:
            keep.mkdir(parents=True, exist_ok=True)
            for file in files:
                (keep / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes(), mtime=0))
        return Recording([trace for file in files for trace in load(file)], "\n".join(failed))


def groups(chosen: list[Workload], apart: bool) -> list[Group]:
    found: dict[object, list[Workload]] = {}
    for workload in chosen:
        alone = apart or workload.ranks > 1
        key = workload.name if alone else (workload.gpu, tuple(workload.environment.items()))
        found.setdefault(key, []).append(workload)
    return [Group(members) for members in found.values()]


def imagine(gpu: str, ranks: int) -> list[str]:
    return ["imagine", "--gpu", gpu, "--gpus", str(ranks), "--steps", "0", "--no-suggest"]


def differences(one: Recording, other: Recording, completion: bool) -> tuple[str, list[str]]:
    """In what sense two runs are equal, and what differs nevertheless: a text for each device of each rank."""
    if len(one.traces) != len(other.traces) or not one.traces:
        return "", [f"{len(one.traces)} and {len(other.traces)} traces"]
    found: list[str] = []
    for sense, completed, order in (
        ("equal", completion, True),
        ("equal but for the order of neighbouring frees", completion, False),
        ("equal but for when freed blocks could be used again", False, False),
    ):
        pairs = zip(one.traces, other.traces, strict=True)
        found = [d.text() for a, b in pairs if not (d := compare(a, b, completed, order)).same]
        if not found:
            return sense, []
    return "", found


def row(
    workload: Workload, gpu: str, one: Recording, other: Recording, sense: str, found: list[str]
) -> tuple[Row, dict[str, Any]]:
    """A line of the table, and its raw figures."""
    if failed := one.failed or other.failed:
        print(f"{workload.name}: failed: {failed}", flush=True)
        return Row(workload.name, "failed", "equal", False), {"failed": failed}
    raw: dict[str, Any] = {
        "what": workload.what,
        "gpu": gpu,
        "ranks": workload.ranks,
        "torch": one.traces[0].about["torch"],
        "events": sum(len(trace.events) for trace in one.traces),
        "peak_allocated_bytes": max(trace.peak_allocated or 0 for trace in one.traces),
        "peak_reserved_bytes": max(trace.peak_reserved or 0 for trace in one.traces),
        "used_at_end_bytes": one.used,
        "build": build(),
        "verdict": sense or "different",
        "differences": found,
        "seconds": round(max(trace.about["seconds"] for trace in one.traces), 1),
    }
    sizes = " / ".join(
        f"{raw[k] / GIB:.2f}" for k in ("peak_allocated_bytes", "peak_reserved_bytes", "used_at_end_bytes")
    )
    print(f"{workload.name}: {raw['events']} events, {sizes} GiB, {'; '.join(found) or sense}", flush=True)
    return Row(workload.name, f"{raw['events']} events, {sizes} GiB", "equal", not found), raw


@functools.cache
def build() -> str:
    """Which hightide it was: figures of several calls are of one build if these are equal."""
    return hashlib.sha256(HIGHTIDE.read_bytes()).hexdigest()[:12]


def add_earlier(name: str, rows: list[Row], raw: dict[str, Any]) -> tuple[list[Row], dict[str, Any]]:
    """With what an earlier call left of other workloads, so that the suite can be run in portions."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return rows, raw
    before = json.loads(path.read_text())
    rows = rows + [Row(**row) for row in before["rows"] if row["what"] not in raw]
    return sorted(rows, key=lambda row: row.what), {**before["raw"], **raw}


def twice(chosen: list[Group], gpu: str, python: Path, small: bool) -> tuple[list[Row], dict[str, Any]]:
    """Every workload twice on imaginary GPUs, in processes of their own."""
    rows, raw = [], {}
    for group in chosen:
        name = gpu or group.first.gpu
        one, other = (group.run(imagine(name, group.first.ranks), python, small) for _ in range(2))
        for member in group.members:
            a, b = one[member.name], other[member.name]
            line, raw[member.name] = row(member, name, a, b, *differences(a, b, completion=True))
            rows.append(line)
    return rows, raw


def beside_real(chosen: list[Group], gpu: str, python: Path, small: bool) -> tuple[list[Row], dict[str, Any]]:
    """Every workload on the GPUs at hand and on their imaginary twins; each in a process of its own."""
    asked = "import torch; print(torch.cuda.device_count(), torch.cuda.get_device_name(0) if torch.cuda.is_available() else '')"
    answer = subprocess.run([python, "-c", asked], capture_output=True, text=True).stdout
    count, _, name = answer.strip().partition(" ")
    if not name:
        sys.exit("--real needs a CUDA device, and PyTorch sees none")
    rows, raw = [], {}
    keep = REAL / re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") / ("small" if small else "full")
    for group in chosen:
        workload = group.first
        if workload.ranks > int(count):
            print(f"{workload.name}: needs {workload.ranks} GPUs, left out")
            continue
        true = group.run(["run", "--no-stacks", "--snapshot-on", "never"], python, small, keep)[workload.name]
        twin = group.run(imagine(gpu or name, workload.ranks), python, small)[workload.name]
        sense, found = differences(true, twin, completion=False)
        if true.used and abs(twin.used / true.used - 1) > DEVICE_BAR:
            found.append(f"device used: {true.used} against {twin.used} ({100 * (twin.used / true.used - 1):+.2f} %)")
        line, raw[workload.name] = row(workload, name, true, twin, sense, found)
        rows.append(line)
    return rows, raw


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these workloads; results of others stay")
    parser.add_argument("--small", "--quick", action="store_true", help="in sizes that take seconds")
    parser.add_argument("--apart", action="store_true", help="each in a process of its own; takes longer")
    parser.add_argument("--real", action="store_true", help="beside the CUDA devices of this machine")
    parser.add_argument("--gpu", default="", help="another imaginary GPU than a workload names")
    parser.add_argument("--python", type=Path, default=PYTHON, help="another interpreter, with another PyTorch")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("A", "B"), help="compare two recordings and stop")
    options = parser.parse_args()
    if options.compare:
        one, other = (load(path) for path in options.compare)
        found = [compare(a, b) for a, b in zip(one, other)]
        print("\n".join(difference.text() for difference in found))
        for a, b in zip(one, other):
            if a.places and len(a.places) == len(b.places):
                print(f"{same_places(a, b)} of them at the same place of the same segment")
        return 0 if len(one) == len(other) and all(difference.same for difference in found) else 1
    chosen = groups(workloads(options.only), options.apart or options.real)
    work = beside_real if options.real else twice
    rows, raw = work(chosen, options.gpu, options.python, options.small)
    name = "fidelity" + ("-real" if options.real else "-small" if options.small else "")
    publish(name, *(add_earlier(name, rows, raw) if options.only else (rows, raw)))
    return exit_code(rows)


if __name__ == "__main__":
    sys.exit(main())
