"""Hostile files: time, memory and the line that each gets. No file is kept.

    python bench/hostile.py [--mutations 1000] [--only TEXT]

Mutated copies of the traces and profiles in testdata/ are explained, replayed and checked: each must end with a documented
exit code and one error with its hint. Then come files made to fill the memory or the time of their reader, and large ones
that are valid; of pickles, Python's pickle.load reads the same file.
"""

from __future__ import annotations

import argparse
import gzip
import os
import pickle
import random
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

from common import HIGHTIDE, ROOT

MUTABLE = [
    *sorted((ROOT / "testdata" / "real").glob("*.pickle")),
    *sorted((ROOT / "internal" / "format" / "testdata").glob("*.gz")),
    ROOT / "internal" / "format" / "testdata" / "tiny.json",
    ROOT / "internal" / "format" / "telemetry" / "testdata" / "stormlog-gpu.json",
]
INSERTED = [
    b"cos\nsystem\n",
    b"\x80\x05",
    b"]" * 5000,
    b"\x8d" + b"\xff" * 8,
    b"r\xff\xff\xff\x7f",
    b"(",
    b"u",
    b"e",
    b".",
    bytes(64),
]
MANY = 400_000


def measured(command: List[str]) -> Tuple[int, int, float, str]:
    """Exit code, MiB at most resident, seconds of processor time, standard error."""
    with tempfile.TemporaryFile() as said:
        child = os.posix_spawn(
            command[0], command, os.environ,
            file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0), (os.POSIX_SPAWN_DUP2, said.fileno(), 2)],
        )  # fmt: skip
        _, status, used = os.wait4(child, 0)
        said.seek(0)
        text = said.read().decode(errors="replace")
    return os.waitstatus_to_exitcode(status), used.ru_maxrss >> 10, used.ru_utime + used.ru_stime, text


def mutate(data: bytes, chance: random.Random) -> bytes:
    """One change: bits, bytes, a cut, something inserted, a stretch repeated, moved or zeroed."""
    out, at = bytearray(data), chance.randrange(len(data))
    kind = chance.randrange(7)
    if kind == 0:
        out[at] ^= 1 << chance.randrange(8)
    elif kind == 1:
        for _ in range(8):
            out[chance.randrange(len(out))] = chance.randrange(256)
    elif kind == 2:
        del out[at:]
    elif kind == 3:
        out[at:at] = chance.choice(INSERTED)
    elif kind == 4:
        out[at:at] = out[at : at + chance.randrange(1, 100_000)] * chance.randrange(1, 30)
    elif kind == 5:
        out[at:at] = out[:200]
    else:
        out[at : at + 1000] = bytes(len(out[at : at + 1000]))
    return bytes(out)


def mutations(count: int, folder: Path) -> None:
    """Explain, replay and check mutated files."""
    chance, codes, most, bad = random.Random(20261123), {}, 0, 0  # type: random.Random, Dict[int, int], int, int
    (folder / "budget.yaml").write_text("peak: 1GiB\n")
    for _ in range(count):
        source = chance.choice(MUTABLE)
        data = source.read_bytes()
        packed = source.suffix == ".gz" and chance.random() < 0.7
        data = mutate(gzip.decompress(data) if packed else data, chance)
        file = folder / source.name
        file.write_bytes(gzip.compress(data, 1) if packed else data)
        command = chance.choice(
            [["explain"], ["explain", "--json"], ["replay"], ["check", "--budget", str(folder / "budget.yaml")]]
        )
        code, peak, _, said = measured([str(HIGHTIDE), *command, str(file)])
        lines = said.strip().splitlines()
        if code not in (0, 1, 3) or "goroutine" in said or code == 3 and not 1 <= len(lines) <= 2:
            bad += 1
            print(f"BAD {source.name} {' '.join(command[:1])}: exit code {code}, {said[:300]!r}")
        codes[code], most = codes.get(code, 0) + 1, max(most, peak)
    print(f"{count} mutations: {bad} bad; exit codes {dict(sorted(codes.items()))}; at most {most} MiB")


def text(word: bytes) -> bytes:
    return b"X" + struct.pack("<I", len(word)) + word


def inside(middle: bytes) -> bytes:
    """A pickle whose one trace holds what is given."""
    return b"\x80\x02}(" + text(b"segments") + b"]" + text(b"device_traces") + b"](](" + middle + b"eeu."


def event(i: int, **more: Any) -> Dict[str, Any]:
    made = {
        "action": "alloc" if i % 2 == 0 else "free_completed",
        "addr": (1 << 40) + i // 2 % 4000 * 512,
        "size": 512,
        "stream": 0,
    }
    return {**made, "time_us": i, "frames": [], **more}


def trace(events: List[Dict[str, Any]], segments: int = 1) -> bytes:
    block = {"size": 2 << 20, "requested_size": 0, "state": "inactive", "frames": []}
    made = [
        {
            "device": 0,
            "address": at,
            "total_size": 2 << 20,
            "stream": 0,
            "segment_type": "small",
            "blocks": [{"address": at, **block}],
        }
        for at in range(1 << 40, (1 << 40) + segments * (2 << 20), 2 << 20)
    ]
    return pickle.dumps({"segments": made, "device_traces": [events]}, 4)


def frame(i: int) -> Dict[str, Any]:
    return {"filename": f"f{i % 97}.py", "line": i, "name": f"g{i % 1009}"}


FILES: Dict[str, Callable[[], bytes]] = {
    "30 million integers.pickle": lambda: inside(b"K\x01" * 30_000_000),
    "20 million dictionaries.pickle": lambda: inside(b"}" * 20_000_000),
    "10 million tuples.pickle": lambda: inside(b"K\x01K\x02\x86" * 10_000_000),
    "4 million distinct texts.pickle": lambda: inside(b"".join(text(b"%d" % i) for i in range(4_000_000))),
    "5 million memo entries.pickle": lambda: inside(b"".join(b"]r" + struct.pack("<I", i) for i in range(5_000_000))),
    "a dictionary of 3 million keys.pickle": lambda: inside(
        b"}(" + b"".join(text(b"k%d" % i) + b"K\x01" for i in range(3_000_000)) + b"u"
    ),
    "a gzip of 60 million integers.pickle.gz": lambda: gzip.compress(inside(b"K\x01" * 60_000_000), 1),
    "a gzip of zeros.gz": lambda: gzip.compress(bytes(300_000_000), 9),
    "10 million objects.json": lambda: b'{"segments":[],"device_traces":[[' + b",".join([b"{}"] * 10_000_000) + b"]]}",
    "a trace of 20 million ones.json": lambda: b'{"traceEvents":[' + b",".join([b"1"] * 20_000_000) + b"]}",
    "700,000 mappings.smaps": lambda: b"".join(
        b"%x-%x r--p 0 0:0 0 /lib/f%d\nRss: 4 kB\n" % (i << 13, (i << 13) + 4096, i) for i in range(700_000)
    ),
    "valid: 400,000 distinct frames.pickle": lambda: trace([event(i, frames=[frame(i)]) for i in range(MANY)]),
    "valid: a stack of 400,000 frames.pickle": lambda: trace([event(0, frames=[frame(i) for i in range(MANY)])]),
    "valid: 400,000 metadata.pickle": lambda: trace(
        [event(i, user_metadata=f"step {i}", compile_context=f"{i}/0") for i in range(MANY)]
    ),
    "valid: 400,000 streams.pickle": lambda: trace([event(i, stream=i) for i in range(MANY)]),
    "valid: 400,000 out-of-memory events.pickle": lambda: trace(
        [event(i, action="oom", device_free=5) for i in range(MANY)]
    ),
    "valid: 200,000 segments.pickle": lambda: trace([], 200_000),
}


def files(only: str, folder: Path) -> None:
    """Explain each file; load pickles in Python, too."""
    for name, make in FILES.items():
        if only not in name:
            continue
        file = folder / name
        if not (
            child := os.fork()
        ):  # a child's peak begins with that of its parent, so this process makes nothing large
            file.write_bytes(make())
            os._exit(0)
        os.waitpid(child, 0)
        code, peak, seconds, said = measured([str(HIGHTIDE), "explain", str(file)])
        row = (
            f"{name}, {file.stat().st_size >> 20} MiB: exit code {code}, {peak} MiB, {seconds:.1f} s of processor time"
        )
        if name.endswith(".pickle"):
            _, brief, quick, _ = measured([str(HIGHTIDE), "explain", "--brief", str(file)])
            load = [sys.executable, "-c", "import pickle, sys; pickle.load(open(sys.argv[1], 'rb'))", str(file)]
            _, theirs, took, _ = measured(load)
            row += f"; --brief {brief} MiB, {quick:.1f} s; pickle.load {theirs} MiB, {took:.1f} s"
        print(row + (f"; {said.splitlines()[0][:200]}" if said else ""), flush=True)
        file.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description="Hostile files: time, memory and the line that each gets.")
    parser.add_argument("--mutations", type=int, default=1000, help="how many (default 1000)")
    parser.add_argument("--only", default="", metavar="TEXT", help="of the made files those whose name has it")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hightide-hostile-") as folder:
        mutations(given.mutations, Path(folder))
        files(given.only, Path(folder))


if __name__ == "__main__":
    main()
