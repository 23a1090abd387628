"""A small reader of channels for the tests, written from include/hightide_channel.h alone."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any, Dict, List

PHASES = ["none", "step", "data", "forward", "backward", "optimizer", "evaluation", "checkpoint", "module", "user"]


class Ring:
    """One channel, read whole without consuming it."""

    def __init__(self, path: Path) -> None:
        data = Path(path).read_bytes()
        assert data[:8] == b"HTCHAN01"
        self.path = Path(path)
        self.abi, self.role, self.pid, self.header_bytes = struct.unpack_from("<IIII", data, 8)
        (self.start, self.ring_bytes, self.mono, self.wall, self.flags, self.head, self.dropped, self.dropped_bytes,
         self.state) = struct.unpack_from("<9Q", data, 24)  # fmt: skip
        assert (self.abi, self.role, self.header_bytes, self.flags) == (1, 1, 4096, 0)
        assert len(data) == 4096 + self.ring_bytes
        (self.word,) = struct.unpack_from("<Q", data, 256)
        self.records = self._records(data[4096:])
        self.json = [r["json"] for r in self.records if r["kind"] == "json"]

    def _records(self, ring: bytes) -> List[Dict[str, Any]]:
        at, found = 0, []
        assert self.head <= self.ring_bytes, "the ring wrapped: nobody was reading"
        while at < self.head:
            size, kind, aux = struct.unpack_from("<IHH", ring, at)
            assert size >= 8 and size % 8 == 0, (at, size)
            if kind:
                (time,) = struct.unpack_from("<Q", ring, at + 8)
                found.append({"time": time, **_payload(kind, aux, ring[at + 16 : at + size])})
            at += size
        assert at == self.head
        return found

    def all(self, kind: str) -> List[Dict[str, Any]]:
        """JSON records of a type."""
        return [j for j in self.json if j["type"] == kind]

    def one(self, kind: str) -> Dict[str, Any]:
        (only,) = self.all(kind)
        return only

    @property
    def steps(self) -> List[Dict[str, Any]]:
        return [r for r in self.records if r["kind"] == "step"]

    @property
    def edges(self) -> List[Dict[str, Any]]:
        return [r for r in self.records if r["kind"] == "edge"]

    def outline(self, *without: str) -> List[str]:
        """Edges as text: +forward, -forward; step records as =1."""
        lines = []
        for r in self.records:
            if r["kind"] == "edge" and r["phase"] not in without:
                name = r["phase"] + (str(r["module"]) if r["module"] else "")
                lines.append(("-" if r["leave"] else "+") + name)
            elif r["kind"] == "step":
                lines.append("=%d%s" % (r["step"], "s" if r["flags"] & 1 else ""))
        return lines


def _payload(kind: int, aux: int, data: bytes) -> Dict[str, Any]:
    if kind == 1:
        (length,) = struct.unpack_from("<I", data)
        assert len(data) - 4 - length in range(8)
        return {"kind": "json", "json": json.loads(data[4 : 4 + length])}
    if kind == 2:
        phase, leave, module, tid, step, rss, allocated, reserved = struct.unpack("<BBHIQqqq", data)
        stay = {"stay": aux} if phase == PHASES.index("user") else {}
        return {"kind": "edge", **stay, "phase": PHASES[phase], "leave": leave, "module": module, "tid": tid,
                "step": step, "rss": rss, "allocated": allocated, "reserved": reserved}  # fmt: skip
    if kind == 3:
        pairs = [struct.unpack_from("<IIq", data, 16 * i) for i in range(aux)]
        assert all(pad == 0 for _, pad, _ in pairs)
        return {"kind": "counters", "values": [[series, value] for series, _, value in pairs]}
    assert kind == 4, kind
    step, duration, rss, micro, flags, allocated = struct.unpack("<QQqIIq", data)
    return {"kind": "step", "step": step, "duration": duration, "rss": rss, "micro": micro, "flags": flags,
            "allocated": allocated}  # fmt: skip


def rings(folder: Path) -> List[Ring]:
    """Every channel in a folder, by pid and name; none may be left half made."""
    assert not list(Path(folder).glob("*.new"))
    return sorted((Ring(p) for p in Path(folder).glob("agent-*.ring")), key=lambda r: (r.mono, r.path.name))
