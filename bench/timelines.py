"""The timelines of a run: how often a second they show something new while it is recorded, and how long a frame takes with an hour of eight ranks.

    python bench/timelines.py [--quick]

A program is recorded every 100 ms, as by default, and its page stands in a headless Chromium with software rendering. Distinct ends of the curves
that were drawn are counted, and what its heap gains after garbage was collected. Then the report of an hour of eight ranks (web/test/reports.mjs) is zoomed by the wheel, once a frame, all groups open.
Needs node with web/node_modules, and Chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import ROOT, Row, exit_code, must, publish, run, token_of

BAR_HZ, BAR_FRAME_MS = 10, 34  # 30 frames a second
BAR_GROWTH = 0.05e6  # bytes a second; readings that are kept until there are 20,000 of a curve take a tenth
PROGRAM = "import time, sys\nkept = []\nwhile True:\n    kept.append(bytearray(1 << 16))\n    time.sleep(0.01)"
BINARY = str(ROOT / "bin" / "hightide")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer seconds")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "HIGHTIDE_DATA": folder}
        recorded = subprocess.Popen(
            [BINARY, "run", "--quiet", "--name", "live", "--", sys.executable, "-c", PROGRAM], env=env
        )
        server = subprocess.Popen([BINARY, "ui", "--addr", "127.0.0.1:0"], env=env, stderr=subprocess.PIPE, text=True)
        try:
            assert server.stderr is not None
            address = next(word for word in server.stderr.readline().split() if word.startswith("http"))
            while not json.loads(must(run([BINARY, "ls", "--json"], env=env)).stdout)["runs"]:
                time.sleep(0.1)
            seconds, page = "5" if quick else "30", str(Path(folder) / "hour.html")
            script = str(ROOT / "bench" / "timelines.mjs")
            told = json.loads(
                must(run(["node", script, address, token_of(Path(folder), address), "live", seconds, page])).stdout
            )
        finally:
            recorded.terminate()
            recorded.wait()
            server.terminate()
            server.wait()
    live, memory, zoom = told["live"], told["memory"], told["zoom"]
    growth = (memory["late"] - memory["early"]) / memory["ms"] * 1000
    told["load"] = os.getloadavg()[0]
    rate, frame = live["states"] / live["ms"] * 1000, statistics.median(zoom["frames"])
    rows = [
        Row(
            f"live, {live['tracks']} tracks: new states drawn",
            f"{rate:.1f} /s",
            f">= {BAR_HZ} /s",
            rate >= BAR_HZ * 0.95,
        ),
        Row("  readings of the recording in that time, newest minus oldest", f"{live['recorded_ns'] / 1e9:.1f} s"),
        Row(
            f"  the page's heap after garbage was collected, {memory['early'] / 1e6:.1f} MB: growth in {memory['ms'] / 1e3:.0f} s",
            f"{growth / 1e6:.3f} MB/s",
            *(() if quick else (f"<= {BAR_GROWTH / 1e6} MB/s", growth <= BAR_GROWTH)),
        ),
        Row(
            f"an hour of 8 ranks, {zoom['tracks']} tracks: a frame while zooming, median",
            f"{frame:.0f} ms",
            f"<= {BAR_FRAME_MS} ms",
            frame <= BAR_FRAME_MS,
        ),
        Row("  different windows drawn in 120 frames", str(zoom["states"])),
        Row("  size of its page", f"{told['bytes'] / 1000:.0f} kB", "<= 1 MB", told["bytes"] <= 1_000_000),
        Row("  load of the machine", f"{told['load']:.0f}"),
    ]
    publish("timelines", rows, told)
    return exit_code(rows)


if __name__ == "__main__":
    sys.exit(main())
