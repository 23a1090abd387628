"""Compare two snapshots as Python sees them; end with 1 and the first difference where they differ."""

import pickle
import sys


def note_wrong_sums(segment):
    """Remember segments of files made by hand, whose sums are not those of their blocks."""
    active = [b for b in segment["blocks"] if b["state"] != "inactive"]
    allocated = sum(b["size"] for b in active if b["state"] == "active_allocated")
    sums = {
        "allocated_size": allocated,
        "active_size": sum(b["size"] for b in active),
        "requested_size": sum(b["requested_size"] for b in active),
    }
    if any(segment[key] != value for key, value in sums.items()):
        by_hand.append(segment["address"])


def plain(value, key=""):
    """A snapshot without what is stale, absent by version, or a sum of the rest."""
    if isinstance(value, dict):
        out = {k: plain(v, k) for k, v in value.items()}
        if out.get("state") == "inactive":
            for stale in ("requested_size", "frames", "forward_frames", "history"):
                out.pop(stale, None)
        if "blocks" in out:
            note_wrong_sums(out)
        for key, absent in (("frames", []), ("compile_context", "N/A"), ("user_metadata", "")):
            if out.get(key) == absent:
                del out[key]
        return out
    if isinstance(value, (list, tuple)):
        if id(value) not in known:  # stacks are shared
            known[id(value)] = [plain(v) for v in value]
        return known[id(value)]
    return value


def compare(a, b, where):
    if (id(a), id(b)) in same:
        return
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(set(a) | set(b)):
            if key not in a or key not in b:
                sys.exit(f"{where}.{key} is only in one of them")
            compare(a[key], b[key], f"{where}.{key}")
    elif isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            sys.exit(f"{where}: {len(a)} and {len(b)} items")
        for i, (x, y) in enumerate(zip(a, b)):
            compare(x, y, f"{where}[{i}]")
        same.add((id(a), id(b)))
    elif a != b:
        sys.exit(f"{where}: {a!r} and {b!r}")


known, same, by_hand = {}, set(), []
files = [pickle.load(open(path, "rb")) for path in sys.argv[1:3]]
old, new = (plain(file) for file in files)
for key in set(new) - set(old):  # empty parts that the file's version did not have
    if not new[key]:
        del new[key]
for key in ("segments", "device_traces"):
    if not old.get(key):
        sys.exit(f"{key} is empty: nothing was compared")
for segment in old["segments"] + new["segments"]:
    if segment["address"] in by_hand:
        for key in ("allocated_size", "active_size", "requested_size"):
            del segment[key]
for snapshot in (old, new):
    snapshot["segments"].sort(key=lambda s: (s["device"], s["address"]))
compare(old, new, "snapshot")
