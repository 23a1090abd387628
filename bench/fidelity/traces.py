"""What an allocator did, as a list of events, and how two such lists differ. Standard library only."""

from __future__ import annotations

import bisect
import difflib
import gzip
import json
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Event = tuple[str, int, int]
"""Action as in PyTorch's snapshots, bytes, number of the stream in order of appearance."""

Place = tuple[int, int]
"""The segment's number in order of appearance, those from before the history by address; the offset in it."""

SHOWN = 3  # events around the first difference
LONGEST = 20_000  # events that are aligned; of longer differences only the common ends count as equal


@dataclass
class Trace:
    """The events of one device in one process; peaks in bytes, None where the source does not tell them."""

    events: list[Event]
    device: int = 0
    peak_allocated: int | None = None
    peak_reserved: int | None = None
    used: int | None = None
    about: dict[str, Any] = field(default_factory=dict)
    places: list[Place] = field(default_factory=list)  # of the events; only snapshots have them


def load(path: Path) -> list[Trace]:
    """Traces of a file: written by record.py (also gzipped), or one of PyTorch's own pickles."""
    if path.suffix == ".pickle":
        return [from_snapshot(path)]
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    whole = json.loads(text)
    about = {name: whole[name] for name in ("torch", "cuda", "cudnn", "failed", "seconds")}
    return [
        Trace(
            [(action, size, stream) for action, size, stream in d["events"]],
            d["device"],
            d["peak_allocated_bytes"],
            d["peak_reserved_bytes"],
            d["used_at_end_bytes"],
            about | {name: d[name] for name in ("name", "total_bytes", "compute_capability", "multiprocessors")},
        )
        for d in whole["devices"]
    ]


def from_snapshot(path: Path) -> Trace:
    """The busiest device of a snapshot; peaks are counted from its events and what was there before them."""
    with open(path, "rb") as file:
        snapshot = pickle.load(file)
    device, history = max(enumerate(snapshot["device_traces"]), key=lambda pair: len(pair[1]))
    streams: dict[int, int] = {}
    events = [
        (e["action"], e["size"], streams.setdefault(e["stream"], len(streams)))
        for e in history
        if e["action"] != "snapshot"
    ]
    segments = [s for s in snapshot["segments"] if s.get("device", device) == device]
    blocks = [b for s in segments for b in s["blocks"] if b["state"].startswith("active")]
    allocated = sum(b["size"] for b in blocks)
    reserved = sum(s["total_size"] for s in segments)
    # Sizes of events are as asked for, those of blocks as rounded: only the reserved bytes can be counted back.
    peak = reserved
    for action, size, _ in reversed(events):
        reserved -= {"segment_alloc": size, "segment_map": size, "segment_free": -size, "segment_unmap": -size}.get(
            action, 0
        )
        peak = max(peak, reserved)
    places = places_of([e for e in history if e["action"] != "snapshot"], segments)
    return Trace(events, device, None, peak, None, {"allocated_at_end": allocated}, places)


def places_of(history: list[dict[str, Any]], segments: list[dict[str, Any]]) -> list[Place]:
    """Where each event lies; segments are those at the end."""
    there = {s["address"] for s in segments}
    for event in reversed(history):
        if event["action"] == "segment_alloc":
            there.discard(event["addr"])
        elif event["action"] == "segment_free":
            there.add(event["addr"])
    starts = sorted(there)
    number = {start: i for i, start in enumerate(starts)}
    made, found = len(number), []
    for event in history:
        at = event["addr"]
        if event["action"] == "segment_alloc":
            bisect.insort(starts, at)
            number[at] = made
            made += 1
        start = starts[max(0, bisect.bisect_right(starts, at) - 1)] if starts else at
        found.append((number.get(start, -1), at - start))
        if event["action"] == "segment_free":
            starts.remove(at)
    return found


def same_places(one: Trace, other: Trace) -> int:
    """How many events of two equal traces lie at the same offset of the same segment, whatever its address."""
    partner: dict[int, int] = {}
    pairs = zip(one.places, other.places)
    return sum(a[1] == b[1] and partner.setdefault(a[0], b[0]) == b[0] for a, b in pairs)


@dataclass
class Difference:
    """How one trace differs from another."""

    events: tuple[int, int]
    equal: int  # events that both have, in order
    first: int | None  # where they part
    around: tuple[list[Event], list[Event]]
    peaks: dict[str, tuple[int | None, int | None]]

    @property
    def same(self) -> bool:
        """Whether every event is the same, in order, and so are the peaks that both know."""
        return self.first is None and all(a is None or b is None or a == b for a, b in self.peaks.values())

    def text(self) -> str:
        if self.first is None:
            lines = [f"all {self.events[0]} events equal"]
        else:
            share = 100 * 2 * self.equal / max(1, sum(self.events))
            lines = [f"{self.equal} of {self.events[0]} and {self.events[1]} events equal ({share:.2f} %)"]
            lines += [f"  from event {self.first}: {a} against {b}" for a, b in zip(*self.around)][:SHOWN]
        for name, (a, b) in self.peaks.items():
            if a is not None and b is not None and a != b:
                lines.append(f"  {name}: {a} against {b} ({100 * (b / a - 1) if a else 0:+.3f} %)")
        return "\n".join(lines)


def settled(events: list[Event]) -> list[Event]:
    """Frees without anything between them in the order of their sizes. PyTorch gives the casts that autocast kept
    back in the order of a hash table by address, which is another one in each process."""
    order: list[Event] = []
    run: list[Event] = []
    for event in events:
        if event[0].startswith("free_"):
            run.append(event)
            continue
        order += [*sorted(run), event]
        run.clear()
    return order + sorted(run)


def compare(one: Trace, other: Trace, completion: bool = True, order: bool = True) -> Difference:
    """Compare event by event. completion=False leaves out when a freed block could be used again, which on
    hardware depends on when a stream got there; order=False lets neighbouring frees be in any order."""
    a, b = one.events, other.events
    if not order:
        a, b = settled(a), settled(b)
    if not completion:
        a, b = ([e for e in events if e[0] != "free_completed"] for events in (a, b))
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    peaks = {
        "peak allocated": (one.peak_allocated, other.peak_allocated),
        "peak reserved": (one.peak_reserved, other.peak_reserved),
    }
    if head == len(a) == len(b):
        return Difference((len(a), len(b)), head, None, ([], []), peaks)
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    middle = 0
    left, right = a[head : len(a) - tail], b[head : len(b) - tail]
    if max(len(left), len(right)) <= LONGEST:
        matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
        middle = sum(block.size for block in matcher.get_matching_blocks())
    around = a[head : head + SHOWN], b[head : head + SHOWN]
    return Difference((len(a), len(b)), head + middle + tail, head, around, peaks)
