"""Writes agent.ring and agent.json: a channel as the Python writer fills it, and what a reader must find.

    python3 testdata/channel/agent.py testdata/channel

Times, pid and start are fixed so that the bytes are the same everywhere. The ring has 64 KiB and
has not wrapped; nothing was consumed. Standard library only.
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "agent" / "python" / place) for place in ("src", "tests")]
from hightide_agent import channel as channels  # noqa: E402
from hightide_agent.encode import encode  # noqa: E402
from ring import Ring  # noqa: E402


def main(folder: Path) -> None:
    """Write both files."""
    channels.monotonic_ns, channels.time_ns = (lambda: 1_000_000_000), (lambda: 1_700_000_000_000_000_000)
    memory = bytearray(channels.HEADER_BYTES + 65536)
    made = channels.Channel(memory, 4242, 987654, 65536)
    hello = {"type": "hello", "pid": 4242, "argv": ["python", "tr\u00e4in.py"], "python": "3.11.7", "role": "main"}
    made.json(encode(hello).encode(), 1_000_000_100)
    made.edge(1, 0, 0, 4242, 0, 123_456_789, -1, -1, 1_000_000_200)
    made.edge(3, 0, 7, 4242, 0, -1, 5 << 30, 6 << 30, 1_000_000_300)
    made.edge(3, 1, 7, 4243, (1 << 40) + 5, 0, 0, 0, 1_000_000_400)
    made.counters([(1, 42), (2, -42), (3, 1 << 62)], 1_000_000_500)
    made.counters([], 1_000_000_600)
    made.step(1, 0, 123_456_789, 4, 0, -1, 1_000_000_700)
    made.step(2, 5_000_000, -1, 1, 1, 77, 1_000_000_800)
    made.json(encode({"type": "log", "level": "warning", "text": ""}).encode(), 1_000_000_900)
    made.set_word(3 << 24 | 7 << 8 | 3)
    made.close()
    (folder / "agent.ring").write_bytes(memory)
    ring = Ring(folder / "agent.ring")
    keys = ("pid", "start", "ring_bytes", "mono", "wall", "head", "dropped", "dropped_bytes", "state", "word")
    expected = {"header": {key: getattr(ring, key) for key in keys}, "records": ring.records}
    text = json.dumps(expected, indent=1, ensure_ascii=True)
    (folder / "agent.json").write_text(text + "\n")


main(Path(sys.argv[1]))
