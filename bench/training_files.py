"""Write allocator snapshots of made-up trainings with as many events as wanted, the objects as torch writes them.

    python bench/training_files.py 1000000 out.pickle

A model of 24 layers is trained on sequences whose length changes with the step. Parameters and the optimizer's state live to the end,
activations for a step, work space for a call, and entries of a cache for one step to thousands: so at every zoom there are blocks that
can be seen. The allocator is a plain one: memory is used again by requests of its very size. Events are written as they come, so this
takes 100 MB of memory; the file has about 60 bytes an event. All of it is made up, and the same each time.
"""

from __future__ import annotations

import argparse
import heapq
import random
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

LAYERS, WIDTH, VOCABULARY = 24, 1024, 32_000
LENGTHS = (128, 192, 256, 320, 384, 448, 512, 768)  # tokens of a step's sequences
SEQUENCES, NUMBER = 8, 2  # a step's, and bytes of a number
PARTS = ("Attention.forward#", "Attention.project#", "Mlp.forward#", "Mlp.project#")
MiB = 1 << 20
TOGETHER = 1000  # objects that pickle appends to a list at once

Stack = tuple[str, ...]  # functions, innermost first; what follows # tells layers apart
LIBRARY, MODEL, PROGRAM = (
    "/usr/lib/python3/site-packages/torch/nn/functional.py",
    "/home/user/project/model.py",
    "/home/user/project/train.py",
)
OF_LIBRARY = {"linear": 125, "dropout": 97, "backward": 340, "AdamW.step": 210}  # and their lines
SETTINGS = {
    "PYTORCH_CUDA_ALLOC_CONF": "",
    "max_split_size": -1,
    "garbage_collection_threshold": 0,
    "expandable_segments": False,
}


class Pickle:
    """Writes the opcodes of pickle's protocol 4 with its memo, piece by piece."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._pieces: list[bytes] = []
        self._memo = 0
        self._words: dict[str, bytes] = {}  # what gets a string again
        file.write(b"\x80\x04")

    def remember(self) -> bytes:
        """Keep the object that was just added; what comes back gets it again."""
        n = self._memo
        self._memo += 1
        self._pieces.append(b"\x94")
        return b"h" + bytes([n]) if n < 256 else b"j" + struct.pack("<I", n)

    def add(self, opcodes: bytes) -> None:
        self._pieces.append(opcodes)

    def value(self, value: object) -> None:
        """Add an object of plain types. Equal strings are one object."""
        if isinstance(value, str):
            if value not in self._words:
                text = value.encode()
                self.add(b"\x8c" + bytes([len(text)]) + text)
                self._words[value] = self.remember()
            else:
                self.add(self._words[value])
        elif isinstance(value, bool):
            self.add(b"\x88" if value else b"\x89")
        elif isinstance(value, int):
            self.add(number(value))
        else:
            raise TypeError(type(value))

    def begin_list(self) -> bytes:
        self.add(b"]")
        return self.remember()

    def begin_dict(self) -> bytes:
        self.add(b"}")
        got = self.remember()
        self.add(b"(")
        return got

    def keys(self, **items: object) -> None:
        """Add keys with values to a dict that was begun; the opcode u ends it."""
        for key, one in items.items():
            self.value(key)
            self.value(one)

    def flush(self) -> None:
        frame = b"".join(self._pieces)
        self._file.write(b"\x95" + struct.pack("<Q", len(frame)) + frame)
        self._pieces.clear()


def number(value: int) -> bytes:
    if 0 <= value < 1 << 8:
        return b"K" + bytes([value])
    if 0 <= value < 1 << 16:
        return b"M" + struct.pack("<H", value)
    if -(1 << 31) <= value < 1 << 31:
        return b"J" + struct.pack("<i", value)
    length = value.bit_length() // 8 + 1
    return b"\x8a" + bytes([length]) + value.to_bytes(length, "little", signed=True)


@dataclass
class Segment:
    address: int
    size: int
    used: int = 0
    blocks: list[tuple[int, int]] = field(default_factory=list)  # address and size, without the free rest

    def write(self, out: Pickle, trace: Trace) -> None:
        held = [(size, trace.live.get(address)) for address, size in self.blocks]
        active = sum(size for size, live in held if live)
        requested = sum(live[0] for _, live in held if live)
        out.begin_dict()
        out.keys(
            device=0,
            address=self.address,
            total_size=self.size,
            allocated_size=active,
            active_size=active,
            requested_size=requested,
        )
        out.keys(stream=0, segment_type="small" if self.size == 2 * MiB else "large", is_expandable=False)
        out.value("blocks")
        out.begin_list()
        out.add(b"(")
        address = self.address
        for size, live in (*held, (self.size - self.used, None)):
            if not size:
                continue
            out.begin_dict()
            out.keys(address=address, size=size, requested_size=live[0] if live else 0)
            out.keys(state="active_allocated" if live else "inactive")
            if live:
                out.value("frames")
                out.add(live[1])
            out.add(b"u")
            address += size
        out.add(b"eu")


class Trace:
    """A plain allocator, whose events go into the file as they come."""

    def __init__(self, out: Pickle, most: int) -> None:
        self._out, self._most, self._written = out, most, 0
        self._now, self._random = 1_700_000_000_000_000, random.Random(16)
        self._free: dict[int, list[int]] = {}  # addresses by size
        self._frames: dict[str, bytes] = {}
        self._newest: dict[bool, Segment] = {}  # by whether it is for large blocks
        self.segments: list[Segment] = []
        self.live: dict[int, tuple[int, bytes]] = {}  # by address: requested bytes, and what gets its frames again

    @property
    def full(self) -> bool:
        return self._written >= self._most

    def alloc(self, requested: int, *stack: str) -> int:
        size, free = rounded(requested), self._free.get(rounded(requested))
        address = free.pop() if free else self._carve(size, stack)
        self.live[address] = (requested, self._event("alloc", address, requested, stack))
        return address

    def free(self, address: int) -> None:
        requested, frames = self.live.pop(address)
        self._free.setdefault(rounded(requested), []).append(address)
        for action in ("free_requested", "free_completed"):
            self._event(action, address, requested, frames)

    def _carve(self, size: int, stack: Stack) -> int:
        large = size > MiB
        segment = self._newest.get(large)
        if not segment or segment.used + size > segment.size:
            whole = 2 * MiB if not large else max(20 * MiB, (size + 2 * MiB - 1) // (2 * MiB) * 2 * MiB)
            address = self.segments[-1].address + self.segments[-1].size if self.segments else 0x7F00_0000_0000
            segment = self._newest[large] = Segment(address, whole)
            self.segments.append(segment)
            self._event("segment_alloc", address, whole, stack)
        segment.blocks.append((segment.address + segment.used, size))
        segment.used += size
        return segment.blocks[-1][0]

    def _event(self, action: str, address: int, size: int, stack: Stack | bytes) -> bytes:
        out = self._out
        if self._written % TOGETHER == 0:
            out.add(b"(")
        self._written += 1
        self._now += self._random.randrange(40)
        out.begin_dict()
        out.keys(action=action, addr=address, size=size, stream=0, time_us=self._now)
        out.value("frames")
        if isinstance(stack, bytes):
            out.add(stack)
        else:
            stack = self.frames(stack)
        out.add(b"u")
        if self._written % TOGETHER == 0:
            self._end_batch()
        return stack

    def _end_batch(self) -> None:
        self._out.add(b"e")
        self._out.flush()

    def end(self) -> None:
        if self._written % TOGETHER:
            self._end_batch()

    def frames(self, stack: Stack) -> bytes:
        """Add a list of frames, each of them one object in the whole file."""
        out = self._out
        got = out.begin_list()
        out.add(b"(")
        for function in stack:
            if function in self._frames:
                out.add(self._frames[function])
                continue
            name, _, part = function.partition("#")
            file = LIBRARY if name in OF_LIBRARY else MODEL if part else PROGRAM
            line = OF_LIBRARY.get(name) or 10 * len(name) + 200 * int(part or 0)
            self._frames[function] = out.begin_dict()
            out.keys(name=name, filename=file, line=line)
            out.add(b"u")
        out.add(b"e")
        return got


def rounded(size: int) -> int:
    return (max(size, 1) + 511) // 512 * 512


class Training:
    """Steps of a training, event by event, until the trace is full."""

    def __init__(self, trace: Trace) -> None:
        self.trace, self.random, self.steps = trace, random.Random(7), 0
        self.cache: list[tuple[int, int]] = []  # step in which an entry goes, and its address
        self.weights: list[tuple[int, str]] = []
        for layer in range(LAYERS):
            for size in (4 * WIDTH * WIDTH, 8 * WIDTH * WIDTH, 2 * WIDTH):
                self.weight(size * NUMBER, f"Block.__init__#{layer}")
        self.weight(VOCABULARY * WIDTH * NUMBER, "Head.__init__#30")

    def weight(self, size: int, place: str) -> None:
        self.trace.alloc(size, "linear", place, "main")
        self.weights.append((size, place))

    def step(self) -> None:
        trace, tokens = self.trace, SEQUENCES * self.random.choice(LENGTHS)
        wide = tokens * WIDTH * NUMBER
        batch = trace.alloc(tokens * 8, "collate", "train", "main")
        saved = [[self.kept(layer, wide, part) for part in PARTS] for layer in range(LAYERS)]
        logits = trace.alloc(tokens * VOCABULARY * NUMBER // 8, "linear", "Head.forward#30", "train", "main")
        loss = trace.alloc(4, "loss", "train", "main")
        gradients = []
        for layer in reversed(range(LAYERS)):
            for activation in reversed(saved[layer]):
                for _ in range(2):
                    trace.free(trace.alloc(wide, "backward", "train", "main"))
                trace.free(activation)
            gradients += [
                trace.alloc(size, "backward", "train", "main") for size, _ in self.weights[3 * layer : 3 * layer + 3]
            ]
        trace.free(logits)
        if self.steps == 0:
            for size, _ in self.weights:
                for _ in range(2):
                    trace.alloc(2 * size, "AdamW.step", "train", "main")
        for one in (*gradients, loss, batch):
            trace.free(one)
        self.remember()
        self.steps += 1

    def kept(self, layer: int, wide: int, part: str) -> int:
        """What a part of a layer keeps for the backward pass; its work space goes at once."""
        calls = (f"{part}{layer}", f"Block.forward#{layer}", "train", "main")
        space = self.trace.alloc(wide * (4 if part.startswith("Mlp") else 1), "linear", *calls)
        result = self.trace.alloc(wide * (3 if part.startswith("Attention") else 1), "dropout", *calls)
        self.trace.free(space)
        return result

    def remember(self) -> None:
        """Entries of a cache go after some steps or after thousands."""
        while self.cache and self.cache[0][0] <= self.steps:
            self.trace.free(heapq.heappop(self.cache)[1])
        for _ in range(3):
            size, left = int(self.random.lognormvariate(13.5, 1.6)), int(2 ** self.random.uniform(0, 12))
            entry = self.trace.alloc(min(size, 64 * MiB), "Cache.put", "train", "main")
            heapq.heappush(self.cache, (self.steps + left, entry))


def write(events: int, path: Path) -> None:
    with path.open("wb") as file:
        out = Pickle(file)
        out.begin_dict()
        out.value("device_traces")
        out.begin_list()
        out.begin_list()
        trace = Trace(out, events)
        training = Training(trace)
        while not trace.full:
            training.step()
        trace.end()
        out.add(b"a")  # the only device's
        out.value("segments")
        out.begin_list()
        out.add(b"(")
        for segment in trace.segments:
            segment.write(out, trace)
        out.add(b"e")
        out.value("allocator_settings")
        out.begin_dict()
        out.keys(**SETTINGS)
        out.add(b"u")
        out.value("external_annotations")
        out.begin_list()
        out.add(b"u.")
        out.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("events", type=int)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    write(options.events, options.out)
    print(f"{options.out}: {options.out.stat().st_size / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
