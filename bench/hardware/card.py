"""What a probe shares: the driver and NVML by ctypes, and figures that are written down one by one. Standard library only."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable
from typing import Any

Q = ctypes.c_ulonglong
NOT_SUPPORTED = 3  # of NVML
BEGIN = "begin\n"  # hightide may run a probe again with other numbers: it then begins anew


class Figures:
    """Lines of JSON in a file: what was found stays, whatever ends the probe."""

    def __init__(self, path: str) -> None:
        self.file = open(path, "a", encoding="utf-8")
        if os.environ.get("HARDWARE_BEGUN") != path:  # not a process that the probe started
            os.environ["HARDWARE_BEGUN"] = path
            self.file.write(BEGIN)
            self.file.flush()

    def say(self, name: str, value: object, unit: str, source: str, **conditions: object) -> None:
        line = {"name": name, "value": value, "unit": unit, "source": source, "conditions": conditions}
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def part(self, name: str, work: Callable[[], None]) -> None:
        """One part of a probe: what it fails of is a figure, and the next part begins."""
        try:
            work()
        except Exception as problem:
            self.say(name, f"{type(problem).__name__}: {problem}".splitlines()[0][:300], "failure", "the probe itself")


class Memory(ctypes.Structure):
    _fields_ = [("total", Q), ("free", Q), ("used", Q)]


class Memory2(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("total", Q), ("reserved", Q), ("free", Q), ("used", Q)]


class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", Q), ("instance", ctypes.c_uint), ("compute", ctypes.c_uint)]


class Nvml:
    """One device, as the driver's management library has it."""

    def __init__(self, index: int = 0) -> None:
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.must("nvmlInit_v2")
        self.device = ctypes.c_void_p()
        self.must("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(self.device))

    def call(self, name: str, *words: Any) -> int:
        try:
            return int(getattr(self.library, name)(*words))
        except AttributeError:
            return NOT_SUPPORTED

    def must(self, name: str, *words: Any) -> None:
        if code := self.call(name, *words):
            raise OSError(f"{name} answered {code}")

    def text(self, name: str, *before: Any) -> str:
        room = ctypes.create_string_buffer(96)
        code = self.call(name, *before, room, ctypes.c_uint(96))
        return room.value.decode() if not code else f"error {code}"

    def number(self, name: str, *more: Any) -> int | str:
        value = ctypes.c_ulonglong(0)
        code = self.call(name, self.device, *more, ctypes.byref(value))
        return value.value if not code else f"error {code}"

    def memory(self) -> Memory:
        found = Memory()
        self.must("nvmlDeviceGetMemoryInfo", self.device, ctypes.byref(found))
        return found

    def memory2(self) -> Memory2:
        found = Memory2(version=ctypes.sizeof(Memory2) | 2 << 24)
        self.must("nvmlDeviceGetMemoryInfo_v2", self.device, ctypes.byref(found))
        return found

    def used(self) -> int:
        return int(self.memory().used)

    def processes(self) -> dict[int, int | None]:
        """Bytes of each process that computes there; none where the driver does not tell, as in most containers."""
        count, found = ctypes.c_uint(64), (Process * 64)()
        self.must("nvmlDeviceGetComputeRunningProcesses_v3", self.device, ctypes.byref(count), found)
        return {p.pid: None if p.used == 2**64 - 1 else p.used for p in found[: count.value]}


class Driver:
    """CUDA's driver."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")

    def must(self, name: str, *words: Any) -> None:
        if code := getattr(self.library, name)(*words):
            raise OSError(f"{name} answered {code}")

    def start(self) -> None:
        self.must("cuInit", 0)

    def context(self) -> None:
        """The context that CUDA's runtime would take."""
        context = ctypes.c_void_p()
        self.must("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.must("cuCtxSetCurrent", context)

    def memory(self) -> tuple[int, int]:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.must("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def attribute(self, which: int) -> int | None:
        value = ctypes.c_int()
        return value.value if not self.library.cuDeviceGetAttribute(ctypes.byref(value), which, 0) else None

    def limit(self, which: int) -> int | None:
        value = ctypes.c_size_t()
        return value.value if not self.library.cuCtxGetLimit(ctypes.byref(value), which) else None


def index() -> int:
    """Which device NVML is asked about: the one that CUDA sees."""
    return int(os.environ.get("HARDWARE_DEVICE", "0"))
