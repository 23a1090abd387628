"""Takes the folders of the machine out of a snapshot's frames: neutral.py IN OUT."""

import pathlib
import pickle
import sys

with open(sys.argv[1], "rb") as file:
    snapshot = pickle.load(file)
for holder in [e for trace in snapshot["device_traces"] for e in trace] + [
    b for s in snapshot["segments"] for b in [s, *s["blocks"]]
]:
    for frame in holder.get("frames", []):
        path = pathlib.PurePath(frame["filename"]).parts
        start = path.index("site-packages") if "site-packages" in path else -1
        frame["filename"] = "/".join(path[start:])
with open(sys.argv[2], "wb") as file:
    pickle.dump(snapshot, file)
