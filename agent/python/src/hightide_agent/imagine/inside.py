"""CUDA's runtime that is part of a library, as CuPy's wheels have it: its functions lead to the imaginary device's.

    cupy_backends…runtime.so: .symtab ─▶ each function of the runtime ─▶ a jump to the preloaded one of that name

Such a runtime is bound within the library, where nothing that is preloaded is asked. It talks to the driver by tables
that only NVIDIA's has. A library that was stripped does not say where its functions are: of that, nothing is changed.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import re
import struct
from typing import Any, Dict, Iterator, List, Tuple

from ..agent import Agent

RUNTIME = re.compile(rb"(__)?cuda[A-Z]\w*\Z")
SYMBOLS, FUNCTION = 2, 2  # the type of a section and of a symbol
NEAR, FAR = struct.Struct("<Bi"), struct.Struct("<BBIQ")  # jumps: by a distance; to an address that stands behind it
REACH = 1 << 30  # bytes that a jump by a distance is sure to span, and the library itself
PAGE = mmap.PAGESIZE


def lead_out(agent: Agent, framework: str, path: str) -> None:
    """Redirect the runtime inside a library of that framework, or say that it stays inside."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        outside = data.find(b"libcudart.so") >= 0
    if not outside and not redirect(path):
        agent.fact("runtime inside", framework)


def loaded(name: str) -> List[str]:
    """Paths of the libraries of that name in this process."""
    with open("/proc/self/maps") as maps:
        paths = {line.split(None, 5)[5].rstrip("\n") for line in maps if line.count("/")}
    return [path for path in paths if path.endswith("/" + name)]


def redirect(path: str) -> int:
    """Let the runtime inside a library that is loaded lead to the device: how many functions do so from now on."""
    if platform.machine() != "x86_64":
        return 0
    base, ours = _base(path), ctypes.CDLL(None)
    found: Dict[int, int] = {}
    for name, at in functions(path):
        function = getattr(ours, name, None)
        if function is not None:
            found[base + at] = ctypes.cast(function, ctypes.c_void_p).value or 0
    if base and found:
        _write(found)
    return len(found)


def functions(path: str) -> Iterator[Tuple[str, int]]:
    """Name and place of each function of the runtime that the library has inside, as its symbols say."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:5] != b"\x7fELF\x02":
            return
        (sections,), (size, count) = struct.unpack_from("<Q", data, 40), struct.unpack_from("<HH", data, 58)
        for number in range(count):
            _, kind, _, _, start, bytes, link = struct.unpack_from("<IIQQQQI", data, sections + number * size)
            if kind != SYMBOLS:
                continue
            (names,) = struct.unpack_from("<Q", data, sections + link * size + 24)
            for name, info, _, home, at, extent in struct.iter_unpack("<IBBHQQ", data[start : start + bytes]):
                if info & 15 == FUNCTION and home and extent >= NEAR.size:
                    text = data[names + name : data.find(b"\0", names + name)]
                    if RUNTIME.match(text):
                        yield text.decode(), at


def _base(path: str) -> int:
    """Where the library lies in this process; 0: nowhere."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            words = line.split(None, 5)
            if len(words) == 6 and words[5].rstrip("\n") == path and int(words[2], 16) == 0:
                return int(words[0].partition("-")[0], 16)
    return 0


def _write(jumps: Dict[int, int]) -> None:
    """Make the code at each address jump to another one: by a page of jumps nearby, as the functions are short."""
    libc = _libc()
    low, high = min(jumps), max(jumps) + NEAR.size
    island = _island(libc, low, high, len(jumps) * FAR.size)
    start, end = low & -PAGE, (high + PAGE - 1) & -PAGE
    _checked(libc.mprotect(start, end - start, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC))
    for number, (at, to) in enumerate(jumps.items()):
        step = island + number * FAR.size
        ctypes.memmove(step, FAR.pack(0xFF, 0x25, 0, to), FAR.size)
        ctypes.memmove(at, NEAR.pack(0xE9, step - at - NEAR.size), NEAR.size)
    _checked(libc.mprotect(start, end - start, mmap.PROT_READ | mmap.PROT_EXEC))
    _checked(libc.mprotect(island, (len(jumps) * FAR.size + PAGE - 1) & -PAGE, mmap.PROT_READ | mmap.PROT_EXEC))


def _island(libc: Any, low: int, high: int, bytes: int) -> int:
    """Pages that all of low to high can reach."""
    for distance in range(16 << 20, REACH, 16 << 20):
        for wanted in (low - distance, high + distance):
            place = libc.mmap(
                wanted & -PAGE, bytes, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0
            )
            if place is not None and max(abs(place - low), abs(place - high)) < REACH:
                return int(place)
            libc.munmap(place, bytes)
    raise OSError("no memory near the library")


def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    libc.mmap.restype, libc.mmap.argtypes = pointer, [pointer, size, number, number, number, ctypes.c_long]
    libc.munmap.argtypes, libc.mprotect.argtypes = [pointer, size], [pointer, size, number]
    return libc


def _checked(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), "the code of a library cannot be changed")
