"""What this process has, where there is no /proc: on macOS libproc is asked, on Windows the process API.

Answers are -1 or None where the system does not tell. Nothing here is imported on Linux.
"""

from __future__ import annotations

import os
import struct
import sys

TYPE_CHECKING = False  # for type checkers only: importing typing takes longer than all the rest of the start
if TYPE_CHECKING:
    from typing import Callable, Optional

# PROCESS_MEMORY_COUNTERS of 64-bit Windows: size, faults, peak working set, working set, and six more.
_COUNTERS = struct.Struct("<II8Q")
# struct proc_taskinfo of macOS: virtual, resident, then times, counts.
_TASK = struct.Struct("<12Q")
_PIDTASKINFO = 4

_ask: Optional[Callable[[], Optional[bytes]]] = None


def rss() -> int:
    """Resident bytes of this process now; -1 where that is not told."""
    answer = _answer()
    return -1 if answer is None else resident_of(answer)


def peak_rss() -> Optional[int]:
    """The system's high-water mark; None where it has none."""
    if sys.platform == "win32":
        answer = _answer()
        return None if answer is None else _COUNTERS.unpack(answer)[2]
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss or None  # bytes on macOS


def resident_of(answer: bytes) -> int:
    """What an answer of this system says is resident; -1: it is not such an answer."""
    form, index = (_COUNTERS, 3) if sys.platform == "win32" else (_TASK, 1)
    if len(answer) != form.size:
        return -1
    return int(form.unpack(answer)[index]) or -1


def _answer() -> Optional[bytes]:
    global _ask
    if _ask is None:
        try:
            _ask = _windows() if sys.platform == "win32" else _macos()
        except (ImportError, OSError, AttributeError):
            _ask = _nothing
    return _ask()


def _nothing() -> Optional[bytes]:
    return None


def _windows() -> Callable[[], Optional[bytes]]:
    import ctypes

    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]
    kernel.GetCurrentProcess.restype = ctypes.c_void_p
    call = kernel.K32GetProcessMemoryInfo
    call.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint]
    own = kernel.GetCurrentProcess()
    size = _COUNTERS.size

    def ask() -> Optional[bytes]:
        room = ctypes.create_string_buffer(size)
        ctypes.memmove(room, struct.pack("<I", size), 4)
        return room.raw if call(own, room, size) else None

    return ask


def _macos() -> Callable[[], Optional[bytes]]:
    import ctypes

    call = ctypes.CDLL("/usr/lib/libSystem.B.dylib").proc_pidinfo
    call.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_int]
    size = _TASK.size

    def ask() -> Optional[bytes]:
        room = ctypes.create_string_buffer(size)
        return room.raw if call(os.getpid(), _PIDTASKINFO, 0, room, size) == size else None

    return ask
