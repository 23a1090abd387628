"""Takes the folders of the machine out of a snapshot's frames: neutral.py IN OUT."""

import pathlib
import pickle
import sys

with open(sys.argv[1], "rb") as file:
    snapshot = pickle.load(file)
whole = snapshot if isinstance(snapshot, dict) else {"segments": snapshot}  # 1.11 and 1.12 have the segments alone
segments = whole["segments"] + whole.get("host_segments", [])
events = [e for trace in [*whole.get("device_traces", []), whole.get("host_traces", [])] for e in trace]
blocks = [b for s in segments for b in s["blocks"]]
for holder in events + segments + blocks + [h for b in blocks for h in b.get("history", [])]:
    for frame in holder.get("frames", []):
        path = pathlib.PurePath(frame["filename"]).parts
        start = path.index("site-packages") if "site-packages" in path else -1
        frame["filename"] = "/".join(path[start:])
with open(sys.argv[2], "wb") as file:
    pickle.dump(snapshot, file)
