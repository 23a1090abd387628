"""The imaginary machine's nvidia-smi, asked while a process holds memory, against NVML in a process of its own."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from harness import A10, DEVICE, environment

MIB = 1 << 20
HOLD = """
import ctypes, sys
runtime, at = ctypes.CDLL(None), ctypes.c_void_p()
assert runtime.cudaSetDevice(1) == 0 and runtime.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(1 << 30)) == 0
print("held", flush=True)
sys.stdin.read()
"""
NVML = """
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]
assert nvml.nvmlInit_v2() == 0
for index in 0, 1:
    handle, memory = ctypes.c_void_p(), Memory()
    assert nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) == 0
    assert nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == 0
    print(memory.total, memory.free, memory.used)
"""


class Smi(unittest.TestCase):
    def ask(self, *arguments: str, code: int = 0) -> str:
        command = [str(DEVICE / "smi" / "nvidia-smi"), *arguments]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def test_it_agrees_with_nvml(self) -> None:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            self.env = environment(Path(folder, "table"), "count=2;" + A10, HIGHTIDE_SMI_PYTHON=sys.executable)
            holder = subprocess.Popen(
                [sys.executable, "-c", HOLD], env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            try:
                assert holder.stdout is not None
                self.assertEqual(holder.stdout.readline(), "held\n")
                self.compare(holder.pid)
            finally:
                holder.communicate("")

    def compare(self, pid: int) -> None:
        told = subprocess.run([sys.executable, "-c", NVML], env=self.env, capture_output=True, text=True, timeout=600)
        nvml = [[int(n) // MIB for n in line.split()] for line in told.stdout.splitlines()]
        self.assertGreater(nvml[1][2], 1024)
        query = self.ask("--query-gpu=index,name,memory.total,memory.free,memory.used,power.draw", "--format=csv")
        rows = list(csv.DictReader(io.StringIO(query), skipinitialspace=True))
        for index, row in enumerate(rows):
            self.assertEqual([row["index"], row["name"], row["power.draw [W]"]], [str(index), "NVIDIA A10", "[N/A]"])
            for name, want in zip(("total", "free", "used"), nvml[index]):
                self.assertEqual(
                    row[f"memory.{name} [MiB]"], f"{want} MiB", "of a GPU of which the driver keeps nothing"
                )
        bare = self.ask("--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "1")
        self.assertEqual(bare, f"{nvml[1][2]}\n")
        self.assertIn(f"{pid}, ", self.ask("--query-compute-apps=pid,used_memory", "--format=csv,noheader"))
        self.assertEqual(self.ask("-L").count("NVIDIA A10 (UUID: GPU-"), 2)
        table = self.ask().splitlines()
        self.assertEqual({len(line) for line in table[1:] if line}, {91}, "\n".join(table))
        self.assertTrue(any(str(pid) in line for line in table))
        self.assertIn('"nonsense" is not a valid field', self.ask("--query-gpu=nonsense", "--format=csv", code=2))
        self.assertIn("does not know -q", self.ask("-q", code=2))


if __name__ == "__main__":
    unittest.main()
