"""Write large allocator snapshots, the objects as torch writes them: frames and texts shared, a list a stack.

    python bench/snapshot_files.py repetitive 1000 out.pickle --protocol 4
    python bench/snapshot_files.py distinct   1000 out.pickle --protocol 2

`repetitive` is a real training step (testdata/real) again and again: few stacks, each a new list per
step, as in a long run. `distinct` has 150,000 different stacks over a random call tree. Sizes are
in MB (10^6 bytes) and met within a few percent. Needs about four times the file in memory.
"""

from __future__ import annotations

import argparse
import gc
import pickle
import random
import sys
from pathlib import Path
from typing import Any

REAL = Path(__file__).resolve().parent.parent / "testdata" / "real" / "h100-lm-ctx128-train-step.pickle"
DISTINCT_STACKS = 150_000

Event = dict[str, Any]


def bridge(trace: list[Event]) -> list[Event]:
    """Events that lead from the end of a trace to its beginning, so that it can follow itself."""
    live: dict[int, Event] = {}
    segments: dict[int, Event] = {}
    missing: list[Event] = []  # segments that the trace frees and did not get
    for event in trace:
        action, address = event["action"], int(event.get("addr") or 0)
        if action == "alloc":
            live[address] = event
        elif action == "free_completed":
            live.pop(address, None)
        elif action == "segment_alloc":
            segments[address] = event
        elif action == "segment_free" and segments.pop(address, None) is None:
            missing.append(event)
    out = [{**event, "action": action} for event in live.values() for action in ("free_requested", "free_completed")]
    out += [{**event, "action": "segment_free"} for event in segments.values()]
    out += [{**event, "action": "segment_alloc"} for event in missing]
    return out


def repetitive(size: int) -> dict[str, Any]:
    with REAL.open("rb") as file:
        snapshot: dict[str, Any] = pickle.load(file)
    step = snapshot["device_traces"][0]
    between = bridge(step)
    length = step[-1]["time_us"] - step[0]["time_us"] + 10
    repeats = max(1, round(size / 3_310_000))
    events: list[Event] = []
    for n in range(repeats):
        lists: dict[int, list[Any]] = {}  # a list that events share is one list in each repeat
        for event in step if n == repeats - 1 else step + between:
            frames = event["frames"]
            copy = lists.setdefault(id(frames), list(frames))
            events.append({**event, "time_us": event["time_us"] + n * length, "frames": copy})
    snapshot["device_traces"][0] = events
    return snapshot


def call_tree(rng: random.Random) -> list[list[Event]]:
    """Stacks of 20 to 60 frames that share their outer calls, innermost first."""
    frames = [
        {
            "name": f"function_{n}",
            "filename": f"/home/user/project/part{n % 97}/module{n % 613}.py",
            "line": n % 900 + 1,
        }
        for n in range(6000)
    ]
    paths: list[list[Event]] = [[frames[0]]]
    stacks: list[list[Event]] = []
    while len(stacks) < DISTINCT_STACKS:
        path = paths[rng.randrange(len(paths))][: rng.randrange(1, 50)]
        path = path + [frames[rng.randrange(len(frames))] for _ in range(max(1, rng.randrange(20, 60) - len(path)))]
        if len(paths) < 3000:
            paths.append(path)
        stacks.append(path[::-1])
    return stacks


def distinct(size: int) -> dict[str, Any]:
    rng = random.Random(7)
    stacks = call_tree(rng)
    events: list[Event] = []
    live: list[Event] = []
    address, now, written = 0x7F0000000000, 1_700_000_000_000_000, 0

    def add(action: str, address: int, bytes_: int, frames: list[Event]) -> None:
        events.append(
            {"action": action, "addr": address, "size": bytes_, "stream": 0, "time_us": now, "frames": frames}
        )

    while written < size:
        now += rng.randrange(200)
        if len(live) > 3000 or (live and rng.random() < 0.49):
            gone = live.pop(rng.randrange(len(live)))
            for action in ("free_requested", "free_completed"):
                add(action, gone["addr"], gone["size"], gone["frames"])
            written += 90
        else:
            frames = list(stacks[rng.randrange(len(stacks))])
            address = 0x7F0000000000 + rng.randrange(1 << 30) * 512
            add("alloc", address, rng.randrange(1, 1 << 22), frames)
            live.append(events[-1])
            written += 52 + 3 * len(frames)
    return {"segments": [], "device_traces": [events], "allocator_settings": {}, "external_annotations": []}


def main() -> int:
    parser = argparse.ArgumentParser(description="Write a large allocator snapshot.")
    parser.add_argument("kind", choices=["repetitive", "distinct"])
    parser.add_argument("megabytes", type=int)
    parser.add_argument("out", type=Path)
    parser.add_argument("--protocol", type=int, default=4, choices=range(2, 6))
    options = parser.parse_args()
    gc.disable()
    snapshot = {"repetitive": repetitive, "distinct": distinct}[options.kind](options.megabytes * 1_000_000)
    with options.out.open("wb") as file:
        pickle.dump(snapshot, file, protocol=options.protocol)
    events = len(snapshot["device_traces"][0])
    print(f"{options.out}: {options.out.stat().st_size / 1e6:.0f} MB, {events} events, protocol {options.protocol}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
