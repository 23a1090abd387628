"""What watching a process from outside costs it: `hightide attach`, on and off in turns on the same process.

    python bench/attach.py [--turns 30] [--seconds 1] [--realtime]

The process computes in pieces of the same work and keeps 400 MiB. In every second turn a recorder is attached to it. Told are
the processor time of a piece with and without (which other programs of the machine disturb less than its time), and the
processor time of the recorder itself. With --realtime, which root may ask for, the process has the first core for itself.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time

from beside import pinned

from common import HIGHTIDE, Recordings, Row, exit_code, publish, ratios

SUBJECT = """
import sys, time
held = bytearray(400 << 20)
held[::4096] = b"x" * len(held[::4096])
print("ready", flush=True)
for line in sys.stdin:
    end, pieces, cpu = time.monotonic() + float(line), 0, time.process_time()
    while time.monotonic() < end:
        sum(range(20000)); held[pieces % 1000 * 4096 : pieces % 1000 * 4096 + 65536] = bytes(65536)
        pieces += 1
    print((time.process_time() - cpu) / pieces, flush=True)
"""


def ticks(pid: int) -> float:
    """Processor time of a process, in seconds."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Recorder:
    """A recorder of one turn, from the moment that it records."""

    def __init__(self, pid: int, env: dict[str, str]) -> None:
        read, write = os.pipe()
        self.process = subprocess.Popen(
            [HIGHTIDE, "attach", str(pid), "--quiet", "--no-inject", "--ready-fd", str(write)],
            pass_fds=[write],
            env=env,
        )
        os.close(write)
        with os.fdopen(read) as ready:
            json.loads(ready.readline())["run"]
        self.began, self.cpu = time.monotonic(), ticks(self.process.pid)

    def share(self) -> float:
        """Its processor time so far, as a share of one core."""
        return (ticks(self.process.pid) - self.cpu) / (time.monotonic() - self.began)

    def end(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--realtime", action="store_true", help="before all other programs of that core, as root may")
    options = parser.parse_args()
    program = pinned(sys.executable, "-c", SUBJECT, realtime=options.realtime)
    subject = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert subject.stdin and subject.stdout and subject.stdout.readline() == "ready\n"

    orders, answers = subject.stdin, subject.stdout

    def turn() -> float:
        print(options.seconds, file=orders, flush=True)
        return float(answers.readline())

    watched, alone, shares, began = [], [], [], 0.5
    recordings = Recordings()
    env = {**os.environ, "HIGHTIDE_DATA": str(recordings.path)}
    turn()
    for n in range(options.turns):
        for attached in (n % 2 == 0, n % 2 == 1):  # mirrored: what drifts cancels
            if not attached:
                time.sleep(began)  # it rests before each turn for as long
                alone.append(turn())
                continue
            start = time.monotonic()
            recorder = Recorder(subject.pid, env)
            began = time.monotonic() - start
            watched.append(turn())
            shares.append(recorder.share())
            recorder.end()
    subject.stdin.close()
    ratio = ratios(watched, alone)
    share = statistics.fmean(shares)
    rows = [
        Row("processor time of the process, watched", ratio.text(), "1.005", ratio.high <= 1.005),
        Row("processor time of the recorder, of one core", f"{100 * share:.2f} %"),
    ]
    publish("attach", rows, {"watched": watched, "alone": alone, "shares": shares})
    return exit_code(rows)


if __name__ == "__main__":
    sys.exit(main())
