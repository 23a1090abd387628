"""The explorer of a snapshot: from the click to its blocks, frames a second while the hand moves, and the size of each answer.

    python bench/explorer.py [--quick] [--realtime] [--rounds 3] [--events 100000 1000000 10000000] [--folder F]
                             [--memory-viz MemoryViz.js --d3 d3.js]

Snapshots of made-up trainings (training_files.py) are opened by `hightide ui`; explorer.mjs measures in a headless Chromium with software
rendering. `cold` is from the start of the server, on the page itself; `first` from the click on the link once the file is read, when
nothing else has been asked; each with a fresh server and a browser without cache. --folder keeps the files. With --realtime, which root
may ask for, all of it goes before other programs.

With --memory-viz the smallest file is opened by PyTorch's own page as well, in turn with ours, from a copy of torch/utils/viz/MemoryViz.js (and
process_alloc_data.js beside it, in newer versions), with the d3 that its imports name from the npm registry (`npm install d3@7`,
node_modules/d3/dist/d3.js). The memory of a tab is PSS of its process after zoom, pan and a collection of garbage. Ours is drawn from a server
that holds the trace, whose memory stands beside. Needs node with web/node_modules, and Chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import BENCH, HIGHTIDE, Row, exit_code, must, publish, run

BARS = {1_000_000: (1500, 50), 10_000_000: (3000, 30)}  # ms to the blocks, frames a second
MOST_BYTES = 300_000


def measure(
    file: Path, events: int, rounds: int, quick: bool, realtime: bool, viz: dict[str, str] | None, rest: bool
) -> dict[str, Any]:
    asked = {"hightide": str(HIGHTIDE), "file": str(file), "cold": 1 if quick else rounds, "first": 1 if quick else rounds,
             "clicks": 1 if quick else 5, "seconds": 1 if quick else 4, "viz": viz, "rest": rest}  # fmt: skip
    command: list[object] = ["node", BENCH / "explorer.mjs", json.dumps(asked)]
    before = os.getloadavg()[0]
    told: dict[str, Any] = json.loads(must(run(["chrt", "--rr", "1", *command] if realtime else command)).stdout)
    return {**told, "events": events, "rested": rest, "load": [round(before, 1), round(os.getloadavg()[0], 1)]}


def rate(shown: list[float]) -> tuple[float, float]:
    """Frames a second by the median time between two, and by the time that 95 % of them keep."""
    times = sorted(shown)
    return 1000 / statistics.median(times), 1000 / times[max(0, round(0.95 * len(times)) - 1)]


def span(values: list[float]) -> str:
    return f"{statistics.median(values):.0f} ms" + (
        f" ({min(values):.0f} to {max(values):.0f})" if len(values) > 1 else ""
    )


def mib(tab: dict[str, int]) -> str:
    return f"{tab['pss'] >> 20} MiB, of it script {tab['heap'] >> 20}"


def rows_of(told: dict[str, Any]) -> list[Row]:
    events = told["devices"][0]["events"]
    name = f"{events:,} events"
    most_ms, least_rate = BARS.get(told["events"], (None, None))
    first = [one["ms"] for one in told["first"]]
    ok = None if most_ms is None else statistics.median(first) <= most_ms
    rows = [
        Row(f"{name}: first click to its blocks", span(first), f"<= {most_ms} ms" if most_ms else "", ok),
        Row("  later clicks", span([one["ms"] for one in told["again"]])),
        Row("  from the start of the server, file not read", span([one["ms"] for one in told["cold"]])),
        Row(
            "  the server's processor time for the first click", span([1000 * one["server_s"] for one in told["first"]])
        ),
    ]
    for gesture, of in told["frames"].items():
        median, slow = rate(of["shown"])
        rows.append(Row(f"  {gesture}: frames a second, median; 95 % at least", f"{median:.0f}; {slow:.0f}", f">= {least_rate}" if least_rate else "",
                        None if least_rate is None else median >= least_rate))  # fmt: skip
    largest = max(told["sizes"], key=lambda one: int(one[1]))
    text = f"{largest[1] / 1000:.0f} kB ({largest[0]})"
    rows.append(Row("  largest answer, as it is sent", text, f"<= {MOST_BYTES // 1000} kB", largest[1] <= MOST_BYTES))
    unpacked = max(told["sizes"], key=lambda one: int(one[2]))
    rows.append(Row("  … unpacked", f"{unpacked[2] / 1000:.0f} kB ({unpacked[0]})"))
    later = "three minutes after the last look" if told["rested"] else "at the end"
    figure = f"{told['server_most'] >> 20} MiB; {told['server_rest'] >> 20} MiB"
    rows.append(Row(f"  memory of the server, at most; {later}", figure))
    viz = told.get("viz")
    if viz:
        once = statistics.median(viz["first"])
        cold = statistics.median([one["ms"] for one in told["cold"]])
        opened = statistics.median(first)
        rows += [
            Row("  memory_viz: from opening the file to its picture", span(viz["first"])),
            Row("  … times ours: from the click; file not read", f"{once / opened:.1f}; {once / cold:.2f}"),
            *(
                Row(
                    f"  … frames a second of a {gesture}, {viz['drawn']:,} shapes; ours",
                    f"{rate(viz['frames'][gesture]['shown'])[0]:.1f}; {rate(told['frames'][own]['shown'])[0]:.0f}",
                )
                for gesture, own in (("zoom", "zoom"), ("pan", "pan of a tenth"))
            ),
            Row("  … memory of its tab; ours", f"{mib(viz['tab'])}; {mib(told['tab'])}"),
            Row(
                "  … bytes that the page reads; ours, with all answers",
                f"{viz['bytes'] / 1e6:.1f} MB; {told['page_bytes'] / 1e6:.2f} MB",
            ),
        ]
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="100,000 events, once")
    parser.add_argument("--realtime", action="store_true", help="before all other programs of this machine")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--events", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--memory-viz", help="a copy of PyTorch's MemoryViz.js")
    parser.add_argument("--d3", help="d3.js of the version that it imports")
    options = parser.parse_args()
    if (options.memory_viz is None) != (options.d3 is None):
        parser.error("--memory-viz needs --d3, and the other way round")
    sizes = [100_000] if options.quick else sorted(options.events)
    rows: list[Row] = []
    raw = []
    with tempfile.TemporaryDirectory(prefix="hightide-bench-") as temporary:
        folder = options.folder or Path(temporary)
        for events in sizes:
            file = folder / f"training-{events}.pickle"
            if not file.exists():
                must(run([sys.executable, BENCH / "training_files.py", events, file]))
            viz = (
                {"script": options.memory_viz, "d3": options.d3} if options.memory_viz and events == sizes[0] else None
            )
            raw.append(
                measure(
                    file,
                    events,
                    options.rounds,
                    options.quick,
                    options.realtime,
                    viz,
                    not options.quick and events == sizes[-1],
                )
            )
            rows += rows_of(raw[-1])
            rows.append(Row("  load of the machine before; after", "; ".join(map(str, raw[-1]["load"]))))
    publish("explorer", rows, raw)
    return exit_code(rows)


if __name__ == "__main__":
    sys.exit(main())
