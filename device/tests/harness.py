"""Runs real scripts on imaginary GPUs, and reads the device tables that remain."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import forkserver
import torchversions

DEVICE = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("HIGHTIDE_CACHE", Path.home() / ".cache" / "hightide"))
LIBRARY = DEVICE / "lib" / "libhightide_device.so"
# HIGHTIDE_TEST_TORCH: one release instead of those that are listed
LISTED = os.environ.get("HIGHTIDE_TEST_TORCH", "").split() or torchversions.listed()
VERSIONS = [version for version in LISTED if torchversions.python(version).exists()]
A10 = "name=NVIDIA A10;slug=a10;memory=23729274880;context=360710144;cc=8.6;sms=72"
# PyTorch's backward thread wants the interpreter once more after backward returned; a script that ends at that
# moment is aborted by Python's shutdown. A real GPU's end takes longer than that.
END = "\nimport time; time.sleep(0.5)\n"
HEADER, DEVICE_BYTES, DEVICES = 4096, 1024, 16


def python(version: str) -> str:
    return str(torchversions.python(version))


def environment(table: Path | None = None, spec: str = A10, **more: str) -> dict[str, str]:
    found = {k: v for k, v in os.environ.items() if not k.startswith(("HIGHTIDE_", "CUDA_", "PYTORCH_"))}
    found |= {"LD_PRELOAD": str(LIBRARY), "LD_LIBRARY_PATH": str(LIBRARY.parent), "HIGHTIDE_DEVICE_SPEC": spec}
    # Kernels that PyTorch compiles while it runs would else come from a folder that earlier runs filled.
    found["USE_PYTORCH_KERNEL_CACHE"] = "0"
    if table:
        found["HIGHTIDE_DEVICE_TABLE"] = str(table)
    return found | more


def run(
    script: str, version: str = LISTED[0], table: Path | None = None, spec: str = A10, fresh: bool = False, **more: str
) -> str:
    """What the script printed. A script that fails fails the test, with its last words.

    Fresh: in a process of its own from the start, for what PyTorch decides when it is loaded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "script.py")
        path.write_text(script + END if "backward" in script else script)
        command, env = [python(version), str(path)], environment(table, spec, **more)
        if fresh:
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
        else:
            done = forkserver.run(command, env)
    if done.returncode:
        raise AssertionError(f"torch {version}: exit {done.returncode}\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}")
    return done.stdout


def said(program: forkserver.Program, word: str) -> None:
    """Waits until a program that was started has printed this line."""
    while f"{word}\n" not in program.printed()[0]:
        if program.ended(0.01):
            raise AssertionError(program.printed()[1][-3000:])


# What a program uses of a device, told by one without PyTorch. It ends as C programs do, which forks of the server do not.
USED = """
import ctypes
runtime, free, total = ctypes.CDLL(None), ctypes.c_size_t(), ctypes.c_size_t()
assert runtime.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)) == 0
print(total.value - free.value)
"""


def used_now(env: dict[str, str]) -> int:
    """Bytes of the first device in use, as a new process sees it, itself included."""
    done = subprocess.run([sys.executable, "-c", USED], env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


class DeviceTable:
    """The few words of a device table that tests look at; offsets as in include/hightide_device.h."""

    def __init__(self, path: Path) -> None:
        self.data = path.read_bytes()
        assert self.data[:8] == b"HTDEVTB1", "no device table"
        self.slot_bytes = struct.unpack_from("<I", self.data, 28)[0]
        self.slots_at = struct.unpack_from("<Q", self.data, 40)[0]
        self.reaped = struct.unpack_from("<Q", self.data, 88)[0]

    def used(self, device: int) -> int:
        return struct.unpack_from("<Q", self.data, HEADER + device * DEVICE_BYTES + 216)[0]

    def peak(self, device: int) -> int:
        return struct.unpack_from("<Q", self.data, HEADER + device * DEVICE_BYTES + 224)[0]

    def states(self) -> list[int]:
        """1 alive, 2 ended, 3 killed; of slots that were ever taken."""
        every = (struct.unpack_from("<I", self.data, self.slots_at + i * self.slot_bytes)[0] for i in range(256))
        return [state for state in every if state]
