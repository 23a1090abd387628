"""Runs a program with PyTorch 1.11 to 1.13 on the imaginary device: static_runtime.py PROGRAM ARGUMENT...

Their wheels have CUDA's runtime inside libc10_cuda.so, where a preloaded library cannot stand in its place.
Its functions are led to the preloaded ones here, by their names in the symbol table. x86-64 Linux; with later
versions, whose runtime is a library of its own, nothing is changed.
"""

import ctypes
import pathlib
import runpy
import struct
import sys

import torch

FUNCTION, SYMBOLS = 2, 2  # STT_FUNC, SHT_SYMTAB
JUMP = b"\x48\xb8%b\xff\xe0"  # movabs rax, address; jmp rax


def functions(data):
    """Names and offsets of the functions in the full symbol table of an ELF file of 64 bits."""
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]
    for _, kind, _, _, offset, length, strings, *_ in sections:
        if kind != SYMBOLS:
            continue
        for at in range(offset, offset + length, 24):
            name, info, _, _, value, room = struct.unpack_from("<IBBHQQ", data, at)
            if info & 15 == FUNCTION and value and room >= 12:
                start = sections[strings][4] + name
                yield data[start : data.index(b"\0", start)].decode(), value


def redirect(library):
    """Leads each function of CUDA's runtime that lies inside the library to the global one of its name."""
    everything = ctypes.CDLL(None)
    maps = pathlib.Path("/proc/self/maps").read_text().splitlines()
    base = next(int(line.split("-")[0], 16) for line in maps if line.endswith(str(library)))
    for name, offset in functions(library.read_bytes()):
        target = getattr(everything, name, None) if name.startswith(("cuda", "__cuda")) else None
        if target is None:
            continue
        at = base + offset
        page = at & -4096
        if everything.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(8192), 7):
            raise OSError("mprotect refused")
        ctypes.memmove(at, JUMP % struct.pack("<Q", ctypes.cast(target, ctypes.c_void_p).value), 12)


redirect(pathlib.Path(torch.__file__).parent / "lib" / "libc10_cuda.so")
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
