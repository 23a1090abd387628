"""What hightide itself takes of the processors while `hightide bench` runs the matrix of examples/matrix.yaml.

    python bench/share.py [--quick] [--realtime] [--jobs 2] [--repeats 1] [--only model=lenet batch=16 …]

Told are the engine's own processor time a trial, its share of time × cores, which is what the bar is of, and of the
processor time of all, the trials' included. On a busy machine trials last longer, so the engine looks more often and its
time a trial says too much, while its share of time × cores says too little. --realtime (which root may ask for) has all
of it go before other programs, which is as good as a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time

from common import HIGHTIDE, PYTHON, ROOT, Recordings, Row, exit_code, publish

BAR = 0.02
QUICK = ["model=lenet", "batch=16"]


def own(pid: int) -> float:
    """Processor seconds of a process that ended and was not yet waited for; those of its children are not in it."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="LeNet at a batch of 16: eight cells")
    parser.add_argument("--realtime", action="store_true", help="before all other programs of this machine")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=[])
    options = parser.parse_args()
    only = [word for one in options.only or (QUICK if options.quick else []) for word in ("--only", one)]
    data = Recordings()
    result = data.path / "result.json"
    path = f"{PYTHON.parent}{os.pathsep}{os.environ['PATH']}"
    command = [HIGHTIDE, "bench", ROOT / "examples" / "matrix.yaml", "--data-dir", data.path, f"--json={result}",
               "--jobs", str(options.jobs), "--repeats", str(options.repeats), *only]  # fmt: skip
    if options.realtime:
        command = ["chrt", "--rr", "1", *command]
    began = time.monotonic()
    process = subprocess.Popen(command, env={**os.environ, "PATH": path, "VIRTUAL_ENV": str(PYTHON.parent.parent)},
                               stdout=subprocess.DEVNULL)  # fmt: skip
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    wall, engine = time.monotonic() - began, own(process.pid)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"hightide bench ended with {process.returncode}")
    trials = len(json.loads(result.read_text())["trials"])
    all_ = usage.ru_utime + usage.ru_stime
    share = engine / wall / (os.cpu_count() or 1)
    rows = [
        Row("trials; jobs at once; time", f"{trials}; {options.jobs}; {wall:.0f} s"),
        Row("processor time of the engine, a trial", f"{1000 * engine / trials:.0f} ms"),
        Row("… of the trials themselves", f"{(all_ - engine) / trials:.2f} s"),
        Row("the engine's share of time × cores", f"{100 * share:.2f} %", f"<= {100 * BAR:.0f} %", share <= BAR),
        Row("… of the processor time of all", f"{100 * engine / all_:.2f} %"),
    ]
    publish("share", rows, {"engine": engine, "all": all_, "trials": trials, "wall": wall, "jobs": options.jobs})
    return exit_code(rows)


if __name__ == "__main__":
    sys.exit(main())
