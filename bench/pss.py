"""How often PSS is read of a large process, and what that costs: python bench/pss.py [--sizes 1 4 12] [--quick]

A process touches that many GiB in pages of 4 KiB (1 GiB in huge ones, too) and stays for 95 s, or 8 minutes with 12 GiB.
Of a process alone the resident set says all, so PSS is read only where the budget has more than it needs: how often is
shown, and has no bar. All sampling stays under 0.5 % of one core: that is what the engine takes more than one that
samples nothing; start and report are left out.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from common import PYTHON, Recordings, Row, exit_code, publish

GiB = 1 << 30
HOLD = """
import mmap, os, sys, time
size, huge, seconds = int(sys.argv[1]), sys.argv[2] == "huge", float(sys.argv[3])
open("/proc/self/oom_score_adj", "w").write("1000")  # where memory runs out, this one goes first
memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(mmap.MADV_HUGEPAGE if huge else mmap.MADV_NOHUGEPAGE)
view = memoryview(memory)
for at in range(0, size, 1 << 20):
    view[at : at + (1 << 20)] = b"x" * (1 << 20)
print(os.getpid(), flush=True)
time.sleep(seconds)
"""


def cpu_of(pid: int) -> float:
    """Processor seconds of a process so far, all its threads."""
    nanoseconds = [int(file.read_text().split()[0]) for file in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(nanoseconds) / 1e9


def price(pid: int) -> float:
    """Processor seconds of one reading."""
    before = time.thread_time()
    Path(f"/proc/{pid}/smaps_rollup").read_text()
    return time.thread_time() - before


def watch(data: Recordings, size: int, pages: str, seconds: float, *flags: object) -> tuple[float, float]:
    """Record a process that holds memory: the engine's share of a core, and what one reading of PSS takes."""
    command = [*data.command("--no-stacks", *flags), PYTHON, "-c", HOLD, size, pages, seconds]
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, env=dict(os.environ))
    assert process.stdout is not None
    one = price(int(process.stdout.readline()))
    begin, before = time.monotonic(), cpu_of(process.pid)
    time.sleep(seconds - 2)
    share = (cpu_of(process.pid) - before) / (time.monotonic() - begin)
    if process.wait():
        sys.exit("the process that holds memory failed")
    return share, one


def hold(size: int, pages: str, seconds: float, idle: float) -> tuple[list[Row], object]:
    """idle: the share of a core of an engine that samples nothing."""
    data = Recordings()
    share, one = watch(data, size, pages, seconds)
    found = [s for s in data.report()["series"] if s["name"] == "host.pss" and max(s["y"]) > size // 2]
    times = [x for s in found[:1] for x, y in zip(s["x"], s["y"], strict=True) if y > size // 2]
    gaps = sorted(b - a for a, b in zip(times, times[1:], strict=False))
    interval = f"every {gaps[len(gaps) // 2] / 1e9:.1f} s" if gaps else "once" if times else "never"
    what = f"{size // GiB} GiB in {pages} pages"
    rows = [
        Row(f"sampling {what}", f"{100 * (share - idle):.2f} % of a core", "<= 0.5 %", share - idle <= 0.005),
        Row("  with all else the engine does", f"{100 * share:.2f} % of a core"),
        Row(f"  PSS of {what}", f"{interval}, {len(times)} readings in {seconds:.0f} s"),
        Row("  one reading", f"{1000 * one:.1f} ms"),
    ]
    for row in rows:
        print(f"  {row.what}: {row.figure}", file=sys.stderr, flush=True)
    return rows, {"share": share, "times": times, "price": one}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sizes", nargs="+", type=int, default=[1, 4, 12], help="GiB")
    parser.add_argument("--quick", action="store_true", help="1 GiB alone")
    options = parser.parse_args()
    idle, _ = watch(Recordings(), 1 << 20, "small", 30, "--interval", "1h")
    rows = [Row("an engine that samples nothing", f"{100 * idle:.2f} % of a core")]
    raw: dict[str, object] = {"idle": idle}
    for gib in [1] if options.quick else options.sizes:
        for pages in ("small", "huge") if gib == 1 else ("small",):
            print(f"{gib} GiB, {pages} pages", file=sys.stderr)
            found, raw[f"{gib} {pages}"] = hold(gib * GiB, pages, 60 + 35 * gib, idle)
            rows += found
    publish("pss", rows, raw)
    return exit_code(rows)


if __name__ == "__main__":
    sys.exit(main())
