"""Beside others: the heap sampler in the same process; tools that ask NVML from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from harness import A10, CACHE, DEVICE, LIBRARY, VERSIONS, environment, forkserver, python, said

HEAP = DEVICE.parent / "heap"
sys.path.append(str(HEAP / "tests"))  # behind our own: modules of the same names are there
import reader  # noqa: E402

GIB, MIB = 1 << 30, 1 << 20
BOTH = """
import ctypes, json, resource, torch
torch.cuda.init()
device = torch.empty(18 << 30, dtype=torch.uint8, device="cuda"); device.zero_()
small = [torch.arange(100).to("cuda") for _ in range(2000)]
pinned = torch.empty(64 << 20, dtype=torch.uint8).pin_memory(); pinned.fill_(1)
host = bytearray(150 << 20)
print(json.dumps({"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10, "at": device.data_ptr()}))
"""


class Together(unittest.TestCase):
    def run_both(self, preload: str, channels: Path) -> dict[str, int]:
        channels.mkdir()
        heap = {"HIGHTIDE_CHANNELS": str(channels), "HIGHTIDE_HEAP_RING": str(32 << 20), "HIGHTIDE_HEAP_ADAPT": "0"}
        done = subprocess.run(
            [python(VERSIONS[0]), "-c", BOTH],
            env=environment(None, A10, LD_PRELOAD=preload, **heap),
            capture_output=True,
            text=True,
            timeout=600,
        )
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        return json.loads(done.stdout)

    def test_device_memory_is_no_host_heap(self) -> None:
        sampler = HEAP / "lib" / "libhightide_heap.so"
        self.assertTrue(sampler.is_file(), "make -C heap")
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            alone = self.run_both(str(LIBRARY), Path(folder, "alone"))
            both = self.run_both(f"{sampler}:{LIBRARY}", Path(folder, "both"))
            paths = list(Path(folder, "both").glob("heap-*"))
            self.assertEqual(len(paths), 1)
            channel = reader.read(paths[0])
        large = sorted(event.size for event in channel.allocs if event.size >= 100 * MIB)
        self.assertEqual([size // MIB for size in large], [150], "the bytearray, and nothing of 18 GiB")
        for event in channel.allocs:
            self.assertFalse(both["at"] <= event.address < both["at"] + 18 * GIB, "an address of the device")
        self.assertLess(both["peak"] - alone["peak"], 150 * MIB, "the host's peak stays what it is without the sampler")


class Outside(unittest.TestCase):
    """Processes that preload nothing: LD_LIBRARY_PATH alone leads to the management library."""

    def test_pynvml_and_nvitop_show_devices_and_processes(self) -> None:
        tools = CACHE / "device" / "bin"
        self.assertTrue((tools / "nvitop").exists(), "no nvitop: scripts/setup device")
        hold = "import torch, time; x = torch.empty(3 << 30, dtype=torch.uint8, device='cuda:1'); print('held', flush=True); time.sleep(999)"
        ask = (
            "import json, pynvml as n; n.nvmlInit(); h = n.nvmlDeviceGetHandleByIndex(1); m = n.nvmlDeviceGetMemoryInfo(h)\n"
            "print(json.dumps([n.nvmlDeviceGetCount(), n.nvmlDeviceGetName(h), m.total, m.used, "
            "[[p.pid, p.usedGpuMemory] for p in n.nvmlDeviceGetComputeRunningProcesses(h)]]))"
        )
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            env = environment(Path(folder, "device-table"), f"count=2;{A10}")
            program = forkserver.start([python(VERSIONS[0]), "-c", hold], env)
            try:
                said(program, "held")
                del env["LD_PRELOAD"]
                told = subprocess.run(
                    [tools / "python", "-c", ask], env=env, capture_output=True, text=True, timeout=300
                )
                seen = subprocess.run(
                    [tools / "nvitop", "--once"], env=env, capture_output=True, text=True, timeout=300
                )
            finally:
                os.kill(program.pid, signal.SIGKILL)
                program.completed(program.wait())
            self.assertEqual(told.returncode, 0, told.stderr)
            used = 3 * GIB + 360710144
            self.assertEqual(json.loads(told.stdout), [2, "NVIDIA A10", 23729274880, used, [[program.pid, used]]])
            self.assertEqual(seen.returncode, 0, seen.stderr)
            self.assertRegex(seen.stdout, r"1 +A10")
            self.assertRegex(seen.stdout, rf"{used // MIB}MiB / 22.10GiB")
            self.assertRegex(seen.stdout, rf"1 +{program.pid} ")


if __name__ == "__main__":
    unittest.main()
