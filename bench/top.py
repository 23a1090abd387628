"""What hightide top takes while nobody types: processor time of a core, at a look a second, while it watches a run of a training.

    python bench/top.py [--quick]

It runs in a pseudo-terminal of 120 x 40. Each figure is of the time after a first look. The bar: at most 2 % of a core.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from common import HIGHTIDE, PYTHON, Row, exit_code, publish

BAR = 2.0  # percent of a core
VIEWS = {"1": "overview", "5": "timeline", "6": "analysis"}
TRAINING = """
import time
import torch
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters())
while True:
    model(torch.randn(32, 64)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(0.05)
"""


def used(pid: int) -> float:
    """Processor seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def drain(terminal: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            os.read(terminal, 1 << 16)


def main() -> int:
    seconds = 8 if "--quick" in sys.argv[1:] else 60
    rows, raw = [], {}
    with tempfile.TemporaryDirectory(prefix="hightide-bench-", ignore_cleanup_errors=True) as data:
        env = {**os.environ, "HIGHTIDE_DATA": data, "TERM": "xterm-256color"}
        training = subprocess.Popen(
            [HIGHTIDE, "run", "-q", "--", PYTHON, "-c", TRAINING], env=env, start_new_session=True
        )
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(HIGHTIDE, [str(HIGHTIDE), "top"], env)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        drain(terminal, 5)
        processes = len([p for p in Path("/proc").iterdir() if p.name.isdigit()])
        for key, name in VIEWS.items():
            os.write(terminal, key.encode())
            drain(terminal, 2)
            before, begun = used(pid), time.monotonic()
            drain(terminal, seconds)
            percent = (used(pid) - before) / (time.monotonic() - begun) * 100
            raw[name] = percent
            rows.append(
                Row(f"top, {name}, {processes} processes", f"{percent:.2f} % of a core", f"{BAR:g} %", percent <= BAR)
            )
        os.write(terminal, b"q")
        os.waitpid(pid, 0)
        os.killpg(training.pid, signal.SIGTERM)
        training.wait()
    publish("top", rows, raw)
    return exit_code(rows)


if __name__ == "__main__":
    sys.exit(main())
