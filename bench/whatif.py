"""What-if: how long after a slider is released the new curve is drawn, on a trace of 100,000 events.

    python bench/whatif.py [--quick]

A real training step (testdata/real) again and again is opened by `hightide ui`; bench/whatif.mjs moves sliders in a headless Chromium with
software rendering, and measures from the release to the frame that shows the answer. Needs node with web/node_modules, and Chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from common import ROOT, Row, exit_code, must, publish, run, token_of

BAR_MS = 150


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer releases")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as folder:
        snapshot = Path(folder) / "trace.pickle"
        must(run([sys.executable, str(ROOT / "bench" / "snapshot_files.py"), "repetitive", "16", str(snapshot)]))
        server = subprocess.Popen(
            [str(ROOT / "bin" / "hightide"), "ui", "--addr", "127.0.0.1:0", str(snapshot)],
            env={**os.environ, "HIGHTIDE_DATA": folder},
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stderr is not None
            address = next(word for word in server.stderr.readline().split() if word.startswith("http"))
            script = str(ROOT / "bench" / "whatif.mjs")
            told = json.loads(
                must(run(["node", script, address, token_of(Path(folder), address), "12" if quick else "60"])).stdout
            )
        finally:
            server.terminate()
            server.wait()
    times = sorted(told["release_ms"])
    median, worst = statistics.median(times), times[max(0, round(0.95 * len(times)) - 1)]
    name = f"new curve after release, {told['events']:,} events"
    rows = [
        Row(f"{name}, median of {len(times)}", f"{median:.0f} ms", f"<= {BAR_MS} ms", median <= BAR_MS),
        Row("  95 % of them", f"{worst:.0f} ms"),
        Row("  the answer alone, median", f"{statistics.median(told['answer_ms']):.0f} ms"),
        Row(
            "  its size, at most",
            f"{max(told['answer_bytes']) / 1000:.0f} kB",
            "<= 300 kB",
            max(told["answer_bytes"]) <= 300_000,
        ),
    ]
    publish("whatif", rows, told)
    return exit_code(rows)


if __name__ == "__main__":
    sys.exit(main())
