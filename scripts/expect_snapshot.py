"""Say what a memory snapshot holds, with Python's own pickle: the truth that the Go reader is tested against.

python3 scripts/expect_snapshot.py FILE > FILE.expected.json
"""

import collections
import json
import pickle
import sys


def main(path: str) -> None:
    with open(path, "rb") as file:
        snapshot = pickle.load(file)
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    active = [block for block in blocks if block["state"] != "inactive"]
    events = [event for trace in snapshot["device_traces"] for event in trace]
    stacks = collections.Counter(
        tuple((f["filename"], f["line"], f["name"]) for f in event.get("frames", [])) for event in events
    )
    json.dump(
        {
            "segments": len(snapshot["segments"]),
            "blocks": len(blocks),
            "reserved": sum(s["total_size"] for s in snapshot["segments"]),
            "allocated": sum(b["size"] for b in blocks if b["state"] == "active_allocated"),
            "requested": sum(b.get("requested_size", b["size"]) for b in active),
            "events": len(events),
            "actions": dict(sorted(collections.Counter(e["action"] for e in events).items())),
            "event_bytes": sum(e["size"] for e in events),
            "address_sum": sum(e.get("addr", 0) for e in events) % 2**64,
            "last_time_us": max((e.get("time_us", 0) for e in events), default=0),
            "distinct_stacks": len(stacks),
            "frames": sum(len(stack) * count for stack, count in stacks.items()),
            "lines": sum(line * count for stack, count in stacks.items() for _, line, _ in stack),
            "annotations": len(snapshot.get("external_annotations", [])),
        },
        sys.stdout,
        indent=1,
    )
    print()


main(sys.argv[1])
