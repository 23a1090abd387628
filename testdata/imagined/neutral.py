"""Takes the folders of the machine out of a snapshot's frames: neutral.py IN OUT."""

import pathlib
import pickle
import sys

with open(sys.argv[1], "rb") as file:
    snapshot = pickle.load(file)
segments = snapshot["segments"] + snapshot.get("host_segments", [])
events = [e for trace in [*snapshot["device_traces"], snapshot.get("host_traces", [])] for e in trace]
for holder in events + [b for s in segments for b in [s, *s["blocks"]]]:
    for frame in holder.get("frames", []):
        path = pathlib.PurePath(frame["filename"]).parts
        start = path.index("site-packages") if "site-packages" in path else -1
        frame["filename"] = "/".join(path[start:])
with open(sys.argv[2], "wb") as file:
    pickle.dump(snapshot, file)
