"""Makes heap.ring and heap.json: a small recorded heap channel and what a reader must find in it.

    make -C heap && python3.11 testdata/channel/heap.py

heap_program.py runs under the real library with a ring of 64 KiB; heap.json is what the tests' own
reader (heap/tests/reader.py) makes of the file, after the lines were checked against the comments
in the program. Byte counts that matter: weight = size from 4 MiB up; `live_bytes` is the sum of the
weights of what was not freed. `line` is null where the line table has none.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "heap" / "tests"))
import reader  # noqa: E402

PROGRAM = "heap_program.py"


def record(into: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        channels = pathlib.Path(scratch, "channels")
        channels.mkdir()
        environment = os.environ | {
            "LD_PRELOAD": str(ROOT / "heap/lib/libhightide_heap.so"),
            "HIGHTIDE_CHANNELS": str(channels),
            "HIGHTIDE_HEAP_RING": "65536",
            "HIGHTIDE_HEAP_SEED": "7",
            "HIGHTIDE_HEAP_ADAPT": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        # Compiled under a bare file name: no path of this machine gets into the recording.
        source = (HERE / PROGRAM).read_text()
        code = f"exec(compile({source!r}, {PROGRAM!r}, 'exec'))"
        subprocess.run([sys.executable, "-S", "-I", "-c", code], check=True, env=environment)
        (ring,) = channels.iterdir()
        shutil.copyfile(ring, into)


def marked_lines() -> dict[str, int]:
    lines = (HERE / PROGRAM).read_text().splitlines()
    return {line.split("# at ")[1]: number for number, line in enumerate(lines, 1) if "# at " in line}


def describe(channel: reader.Channel) -> dict[str, object]:
    return {
        "header": channel.header,
        "threads": {str(tid): name for tid, name in channel.threads.items()},
        "codes": [
            {"code": c.number, "first_line": c.first_line, "python": c.python, "filename": c.filename, "name": c.name,
             "table_bytes": len(c.table)}
            for c in channel.codes.values()
        ],
        "events": [event(channel, e) for e in channel.events],
        "live_bytes": sum(alloc.weight * left // alloc.size for alloc, left in channel.live()),
    }  # fmt: skip


def event(channel: reader.Channel, e: reader.Alloc | reader.Free) -> dict[str, object]:
    if isinstance(e, reader.Free):
        return {"kind": "free", "time_ns": e.time_ns, "address": e.address, "size": e.size}
    return {
        "kind": "alloc", "time_ns": e.time_ns, "address": e.address, "size": e.size, "weight": e.weight,
        "word": e.word, "tid": e.tid, "origin": e.origin, "flags": e.flags,
        "native_frames": sum(native for _, _, native in e.frames),
        "stack": [{"code": where, "lasti": lasti, "line": channel.codes[where].line(lasti)}
                  for where, lasti, native in e.frames if not native],
    }  # fmt: skip


def check(channel: reader.Channel) -> None:
    """Every marked line is the innermost frame of some allocation."""
    blamed = {channel.stack(alloc)[0][2] for alloc in channel.allocs if channel.stack(alloc)}
    missing = {name: line for name, line in marked_lines().items() if line not in blamed}
    assert not missing, f"lines not blamed: {missing}"
    assert channel.header["dropped_records"] == 0
    assert any(alloc.flags & 1 for alloc in channel.allocs), "nothing was truncated"


def main() -> None:
    ring = HERE / "heap.ring"
    record(ring)
    channel = reader.read(ring)
    check(channel)
    (HERE / "heap.json").write_text(json.dumps(describe(channel), indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
