"""What hightide ui costs: 200 who watch a run at 10 Hz, some that stand still, curves of an hour of eight ranks, and a day of runs.

    python bench/server.py [--quick] [--realtime]

The server, the run and those who watch are three processes of this machine. Processor time is the kernel's, of the server alone. The day
is TestServerDay in bench/server_test.go. With --realtime, which root may ask for, all of it goes before the machine's other programs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common import HIGHTIDE, ROOT, MiB, Row, must, publish, run, token_of

VIEWERS, STALLED = 200, 200
TICKS = os.sysconf("SC_CLK_TCK")
TRAINING = """import sys, time
held, end = [], time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    held.append(bytearray(1 << 16))
    time.sleep(0.02)
"""


TOKENS: dict[str, str] = {}  # by host:port


@contextmanager
def server(data: Path, *flags: str) -> Iterator[tuple[str, int]]:
    """Its host:port, and its pid."""
    env = {**os.environ, "HIGHTIDE_DATA": str(data)}
    process = subprocess.Popen(
        [HIGHTIDE, "ui", "--addr", "127.0.0.1:0", *flags], env=env, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr
        found = re.search(r"http://([^/\s]+)/", process.stderr.readline())
        if not found:
            sys.exit("the server did not begin")
        TOKENS[found[1]] = token_of(data, found[1])
        yield found[1], process.pid
    finally:
        process.kill()
        process.wait()


def cpu(pid: int) -> float:
    """Seconds of processor time so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def status(pid: int, name: str) -> int:
    return int(re.findall(rf"{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[0]) << 10


async def connect(address: str, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 22)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKENS[address]}\r\n\r\n".encode())
    await writer.drain()
    return reader, writer


class Watching:
    """Those who watch a run: how many events of readings each has got."""

    def __init__(self) -> None:
        self.counts = [0] * VIEWERS
        self.tasks: list[asyncio.Task[None]] = []
        self.stalled: list[asyncio.StreamWriter] = []

    async def one(self, address: str, number: int) -> None:
        reader, _ = await connect(address, "/api/v1/runs/last/live")
        while line := await reader.readline():
            self.counts[number] += line == b"event: samples\n"

    def begin(self, address: str) -> None:
        self.tasks = [asyncio.create_task(self.one(address, i)) for i in range(VIEWERS)]

    async def stall(self, address: str) -> None:
        """Connections that nobody reads from."""
        for _ in range(STALLED):
            _, writer = await connect(address, "/api/v1/runs/last/live")
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            self.stalled.append(writer)

    async def measure(self, pid: int, seconds: float) -> tuple[float, float, int]:
        """Cores that the server takes, events a second of the slowest, and its memory."""
        counts, used, begin = self.counts[:], cpu(pid), time.monotonic()
        await asyncio.sleep(seconds)
        wall = time.monotonic() - begin
        slowest = min(now - then for now, then in zip(self.counts, counts, strict=True))
        return (cpu(pid) - used) / wall, slowest / wall, status(pid, "VmRSS")


async def live(seconds: float) -> list[Row]:
    with tempfile.TemporaryDirectory() as name, server(Path(name)) as (address, pid):
        env = {**os.environ, "HIGHTIDE_DATA": name}
        command = [str(HIGHTIDE), "run", "--quiet", "--", sys.executable, "-c", TRAINING, str(2 * seconds + 15)]
        training = subprocess.Popen(command, env=env)
        try:
            await asyncio.sleep(2)
            watching = Watching()
            watching.begin(address)
            await asyncio.sleep(3)
            cores, rate, memory = await watching.measure(pid, seconds)
            await watching.stall(address)
            await asyncio.sleep(3)
            with_stalled = await watching.measure(pid, seconds)
            peak = status(pid, "VmHWM")
            for task in watching.tasks:
                task.cancel()
        finally:
            training.wait()
    return [
        Row(f"{VIEWERS} watch a live run, processor", f"{cores:.2f} cores", "<= 1", cores <= 1),
        Row("  memory of the server", f"{memory / MiB:.0f} MiB", "<= 300 MB", memory <= 300e6),
        Row("  events of readings a second, the slowest", f"{rate:.1f}", ">= 9.5", rate >= 9.5),
        Row(f"{STALLED} more that read nothing: processor", f"{with_stalled[0]:.2f} cores"),
        Row("  memory of the server, highest", f"{peak / MiB:.0f} MiB", "<= 300 MB", peak <= 300e6),
        Row("  events a second of the others, the slowest", f"{with_stalled[1]:.1f}", ">= 9.5", with_stalled[1] >= 9.5),
    ]


def curves(rounds: int) -> list[Row]:
    """An hour of eight ranks: all 64 curves for a wide screen, another stretch of time each."""
    with tempfile.TemporaryDirectory() as name:
        must(run(["go", "test", "-count=1", "-run", "^TestHour$", "./bench"], {"HIGHTIDE_HOUR": name}, ROOT))
        with server(Path(name)) as (address, pid):
            taken, size, used = [], 0, 0.0
            for i in range(rounds + 1):
                begin_ns = i * 10**9
                path = f"/api/v1/runs/last/series?name=host.rss&points=1000&from_ns={begin_ns}&to_ns={3600 * 10**9 - begin_ns}"
                begin = time.perf_counter()
                asking = urllib.request.Request(
                    f"http://{address}{path}", headers={"Authorization": f"Bearer {TOKENS[address]}"}
                )
                with urllib.request.urlopen(asking) as answer:
                    size = len(answer.read())
                if i:  # the first reads the recording
                    taken.append(time.perf_counter() - begin)
                else:
                    first, used = time.perf_counter() - begin, cpu(pid)
            each = (cpu(pid) - used) / rounds
            memory = status(pid, "VmHWM")
    p95 = statistics.quantiles(taken, n=20)[-1]
    return [
        Row("RSS of eight ranks over an hour, 1,000 points each, 95 %", f"{p95 * 1e3:.1f} ms", "<= 30 ms", p95 <= 0.03),
        Row("  processor time each", f"{each * 1e3:.1f} ms"),
        Row("  size of an answer", f"{size / 1e3:.0f} kB"),
        Row("  the first, which reads the recording", f"{first:.2f} s"),
        Row("  memory of the server, highest", f"{memory / MiB:.0f} MiB"),
    ]


def day(runs: int) -> list[Row]:
    done = must(
        run(["go", "test", "-count=1", "-v", "-run", "^TestServerDay$", "./bench"], {"HIGHTIDE_DAY": str(runs)}, ROOT)
    )
    figures = json.loads(re.findall(r"day (\{.*\})", done.stdout)[-1])
    early, late = figures["early"], figures["late"]
    return [
        Row(
            f"{runs} runs of five minutes, watched: {what} after a quarter, at the end",
            f"{early[key]:,}, {late[key]:,}",
            bar,
            late[key] <= high,
        )
        for what, key, bar, high in (
            ("memory that is held, bytes", "heap", "no growth (+10 %)", early["heap"] * 1.1),
            ("goroutines", "goroutines", "no growth", early["goroutines"] + 2),
            ("descriptors", "files", "no growth", early["files"] + 2),
        )
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--realtime", action="store_true", help="before all other programs, as root may")
    options = parser.parse_args()
    quick = options.quick
    if options.realtime:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    rows = asyncio.run(live(5 if quick else 30))
    rows += curves(20 if quick else 200)
    rows += day(16 if quick else 288)
    publish("server", rows, None)


if __name__ == "__main__":
    main()
