"""Read a heap channel: the tests' own reader, written from docs/formats/channel.md alone.

Reading lists the records without consuming them. Lines come from a decoder of our own for each
kind of line table, so that a mistake in the library is not repeated here by the interpreter's help.
"""

from __future__ import annotations

import dataclasses
import pathlib
import struct
from collections.abc import Iterator

MAGIC = 0x31304E4148435448
HEADER = 4096
PAD, CODE, ALLOC, FREE, THREAD, MALLOC = 0, 64, 65, 66, 67, 68
ORIGINS = {1: "malloc", 2: "calloc", 3: "realloc", 4: "aligned", 5: "mmap", 6: "mmap-shared"}


@dataclasses.dataclass
class Code:
    number: int
    first_line: int
    python: int
    filename: str
    name: str
    table: bytes

    def line(self, lasti: int) -> int | None:
        if self.python >= 0x30B:
            return line_311(self.table, self.first_line, lasti)
        if self.python == 0x30A:
            return line_310(self.table, self.first_line, lasti)
        return line_lnotab(self.table, self.first_line, lasti)


@dataclasses.dataclass
class Alloc:
    time_ns: int
    address: int
    size: int
    weight: int
    word: int
    tid: int
    origin: str
    flags: int
    frames: list[tuple[int, int, int]]


@dataclasses.dataclass
class Free:
    time_ns: int
    address: int
    size: int


@dataclasses.dataclass
class Channel:
    header: dict[str, int]
    codes: dict[int, Code] = dataclasses.field(default_factory=dict)
    threads: dict[int, str] = dataclasses.field(default_factory=dict)
    events: list[Alloc | Free] = dataclasses.field(default_factory=list)
    counts: list[tuple[int, ...]] = dataclasses.field(default_factory=list)  # used, free, top, mapped, ns

    @property
    def allocs(self) -> list[Alloc]:
        return [event for event in self.events if isinstance(event, Alloc) and event.address]

    @property
    def failed(self) -> list[Alloc]:
        """Allocations for which there was no memory."""
        return [event for event in self.events if isinstance(event, Alloc) and event.flags & 4]

    @property
    def frees(self) -> list[Free]:
        return [event for event in self.events if isinstance(event, Free)]

    def stack(self, alloc: Alloc) -> list[tuple[str, str, int | None]]:
        """(file name, function, line) of each Python frame, innermost first."""
        python = [(self.codes[where], lasti) for where, lasti, native in alloc.frames if not native]
        return [(pathlib.PurePath(code.filename).name, code.name, code.line(lasti)) for code, lasti in python]

    def live(self) -> list[tuple[Alloc, int]]:
        """Allocations that were not freed, each with the bytes of it that are left."""
        left: dict[int, tuple[Alloc, int]] = {}
        for event in self.events:
            if isinstance(event, Alloc) and event.flags & 4:
                continue
            if isinstance(event, Alloc):
                left[event.address] = (event, event.size)
            elif event.address in left:
                alloc, size = left.pop(event.address)
                if event.size and event.size < size:
                    left[event.address] = (alloc, size - event.size)
        return list(left.values())


HEADER_FIELDS = {
    "magic": (0, "Q"), "abi": (8, "I"), "role": (12, "I"), "pid": (16, "I"), "header_bytes": (20, "I"),
    "process_start": (24, "Q"), "ring_bytes": (32, "Q"), "created_mono_ns": (40, "Q"),
    "created_wall_ns": (48, "Q"), "flags": (56, "Q"), "head": (64, "Q"), "dropped_records": (72, "Q"),
    "dropped_bytes": (80, "Q"), "state": (88, "Q"), "tail": (128, "Q"), "word": (256, "Q"),
    "heap_sampled": (320, "Q"), "heap_mean_now": (328, "Q"), "heap_untracked": (336, "Q"),
    "heap_flags": (344, "Q"), "heap_peak_rss": (352, "Q"),
}  # fmt: skip


def read(path: pathlib.Path) -> Channel:
    data = path.read_bytes()
    header = {name: struct.unpack_from("<" + form, data, at)[0] for name, (at, form) in HEADER_FIELDS.items()}
    assert header["magic"] == MAGIC and header["role"] == 2 and header["abi"] == 1
    assert len(data) == HEADER + header["ring_bytes"]
    channel = Channel(header)
    for kind, time_ns, body in records(data, header):
        add(channel, kind, time_ns, body)
    return channel


def records(data: bytes, header: dict[str, int]) -> Iterator[tuple[int, int, bytes]]:
    at = header["tail"]
    while at < header["head"]:
        start = HEADER + at % header["ring_bytes"]
        size, kind, _aux = struct.unpack_from("<IHH", data, start)
        if size == 0 or size & 0x80000000:
            return  # not written yet
        assert size % 8 == 0
        if kind != PAD:
            yield kind, struct.unpack_from("<Q", data, start + 8)[0], data[start + 16 : start + size]
        at += size


def add(channel: Channel, kind: int, time_ns: int, body: bytes) -> None:
    if kind == CODE:
        number, first, python, file_bytes, name_bytes, _, table_bytes, _ = struct.unpack_from("<IiHHHHII", body)
        texts = body[24:]
        filename, name = texts[:file_bytes], texts[file_bytes : file_bytes + name_bytes]
        table = texts[file_bytes + name_bytes :][:table_bytes]
        assert number not in channel.codes
        channel.codes[number] = Code(number, first, python, filename.decode(), name.decode(), table)
    elif kind == ALLOC:
        address, size, weight, word, tid, count, origin, flags = struct.unpack_from("<QQQQIHBB", body)
        frames = [struct.unpack_from("<QiI", body, 40 + 16 * i) for i in range(count)]
        assert all(native or where in channel.codes for where, _, native in frames), "a frame before its code"
        channel.events.append(Alloc(time_ns, address, size, weight, word, tid, ORIGINS[origin], flags, frames))
    elif kind == FREE:
        channel.events.append(Free(time_ns, *struct.unpack_from("<QQ", body)))
    elif kind == THREAD:
        tid, length = struct.unpack_from("<II", body)
        channel.threads[tid] = body[8 : 8 + length].decode()
    elif kind == MALLOC:
        channel.counts.append(struct.unpack_from("<5Q", body))
    else:
        raise AssertionError(f"kind {kind} in a heap channel")


def line_lnotab(table: bytes, line: int, lasti: int) -> int:
    """co_lnotab, to 3.9: pairs (bytes of code, lines), lines signed."""
    address = 0
    for step, lines in zip(table[::2], table[1::2]):
        address += step
        if address > lasti:
            break
        line += lines - 256 if lines >= 128 else lines
    return line


def line_310(table: bytes, line: int, lasti: int) -> int | None:
    """co_linetable of 3.10 (PEP 626): pairs (bytes of code, lines), -128: this range has no line."""
    address = 0
    for step, delta in zip(table[::2], table[1::2]):
        delta = delta - 256 if delta >= 128 else delta
        if delta != -128:
            line += delta
        address += step
        if lasti < address:
            return None if delta == -128 else line
    return None


def line_311(table: bytes, line: int, lasti: int) -> int | None:
    """co_linetable of 3.11 and later: entries of 1 + n bytes, see Objects/locations.md."""
    at = address = 0
    while at < len(table):
        kind, units = table[at] >> 3 & 15, (table[at] & 7) + 1
        at += 1
        delta = 0
        if kind in (13, 14):
            delta = varint(table, at)
            delta = -(delta >> 1) if delta & 1 else delta >> 1
        elif kind in (11, 12):
            delta = kind - 10
        line += delta
        while at < len(table) and not table[at] & 0x80:
            at += 1
        address += units * 2
        if lasti < address:
            return None if kind == 15 else line
    return None


def varint(table: bytes, at: int) -> int:
    value = shift = 0
    while True:
        value |= (table[at] & 63) << shift
        if not table[at] & 64:
            return value
        at, shift = at + 1, shift + 6
