"""Unmodified PyTorch, of every version that is installed, on imaginary GPUs."""

from __future__ import annotations

import os
import signal
import tempfile
import unittest
from pathlib import Path

from harness import A10, VERSIONS, DeviceTable, environment, forkserver, python, run, said, used_now

GIB = 1 << 30


class Torch(unittest.TestCase):
    def each(self, script: str, fresh: bool = False, **more: str) -> dict[str, list[str]]:
        self.assertTrue(VERSIONS, "no PyTorch environment: scripts/setup torch")
        return {version: run(script, version, fresh=fresh, **more).split("\n") for version in VERSIONS}

    def test_training_step_kept_bytes_and_graphs(self) -> None:
        script = """
import torch
m = torch.nn.Linear(256, 256).cuda(); o = torch.optim.AdamW(m.parameters())
for _ in range(2):
    m(torch.randn(8, 256).cuda()).pow(2).mean().backward(); o.step(); o.zero_grad()
print(torch.tensor([3, 1, 2]).cuda().tolist())
print(torch.cuda.get_device_name(0), torch.cuda.get_device_properties(0).total_memory)
print(torch.empty(1).pin_memory().is_pinned())
m = torch.nn.Linear(64, 64).cuda(); x = torch.zeros(4, 64, device='cuda')
s = torch.cuda.Stream()
with torch.cuda.stream(s):
    m(x)
torch.cuda.synchronize()
g = torch.cuda.CUDAGraph()
with torch.cuda.graph(g):
    y = m(x)
g.replay(); a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
a.record(); b.record(); torch.cuda.synchronize()
print(a.elapsed_time(b) >= 0, torch.cuda.is_current_stream_capturing())
"""
        for version, lines in self.each(script).items():
            with self.subTest(version):
                self.assertEqual(lines[0], "[3, 1, 2]")
                self.assertEqual(lines[1], "NVIDIA A10 23729274880")
                self.assertEqual(lines[2:4], ["True", "True False"])

    def test_nodes_of_graphs_take_memory(self) -> None:
        """A kernel each and products as well, of cuBLAS and cuBLASLt, from when the graph can be launched until it is gone."""
        script = """
import torch
a, out = torch.zeros(64, 64, device='cuda'), torch.zeros(64, 64, device='cuda')
s = torch.cuda.Stream()
with torch.cuda.stream(s):
    a.add_(1); torch.mm(a, a, out=out)
torch.cuda.synchronize()
used = lambda: torch.cuda.mem_get_info()[1] - torch.cuda.mem_get_info()[0] - torch.cuda.memory_reserved()
before, g = used(), torch.cuda.CUDAGraph()
with torch.cuda.graph(g):
    for _ in range(30): a.add_(1)
    for _ in range(20): torch.mm(a, a, out=out)
print(used() - before)
g.reset()
print(used() - before)
"""
        for version, lines in self.each(script, spec=A10 + ";graph_node=10240").items():
            with self.subTest(version):
                self.assertEqual(lines[:2], [str(50 * 10240), "0"])

    def test_out_of_memory_is_torchs_own(self) -> None:
        script = """
import torch
a = torch.empty(20 << 30, dtype=torch.uint8, device='cuda')
try: torch.empty(3 << 30, dtype=torch.uint8, device='cuda')
except torch.OutOfMemoryError as e: print(str(e).split('. Of')[0])
del a  # cached: given back when the next one does not fit
print(torch.empty(21 << 30, dtype=torch.uint8, device='cuda').numel(), torch.cuda.memory_stats()['num_alloc_retries'])
"""
        for version, lines in self.each(script).items():
            with self.subTest(version):
                self.assertIn("Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 22.10 GiB", lines[0])
                # one retry before the error, one that helped
                self.assertEqual(lines[1], f"{21 * GIB} 2")

    def test_expandable_segments_and_async_pools(self) -> None:
        script = """
import torch, warnings
warnings.simplefilter("error")  # as of a question about NVLink's fabric that is refused
xs = [torch.empty(50 << 20, dtype=torch.uint8, device='cuda') for _ in range(4)]
print(torch.cuda.memory_allocated() == 200 << 20)
del xs; torch.cuda.synchronize(); torch.cuda.empty_cache(); torch.cuda.synchronize()
print(torch.cuda.memory_reserved())
"""
        for conf in ("expandable_segments:True", "backend:cudaMallocAsync"):
            for version, lines in self.each(script, fresh="backend" in conf, PYTORCH_CUDA_ALLOC_CONF=conf).items():
                with self.subTest(f"{version} {conf}"):
                    self.assertEqual(lines[:2], ["True", "0"])

    def test_192_gib_cost_little(self) -> None:
        script = """
import resource, torch
torch.cuda.init(); before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
x = [torch.empty(19 << 30, dtype=torch.uint8, device='cuda') for _ in range(10)]
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
        spec = "name=Large;memory=206158430208;cc=10.0;sms=148"
        self.assertLess(int(run(script, VERSIONS[0], spec=spec)), 200 << 10)  # KiB

    def test_the_killed_give_back(self) -> None:
        hold = "import torch, time; x = torch.empty(4 << 30, dtype=torch.uint8, device='cuda'); print('held', flush=True); time.sleep(999)"
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            path = Path(folder, "device-table")
            program = forkserver.start([python(VERSIONS[0]), "-c", hold], environment(path, A10))
            said(program, "held")
            self.assertGreater(DeviceTable(path).used(0), 4 * GIB)
            os.kill(program.pid, signal.SIGKILL)
            self.assertEqual(program.completed(program.wait()).returncode, -signal.SIGKILL)
            self.assertLess(used_now(environment(path, A10)), GIB)
            table = DeviceTable(path)
            self.assertEqual((table.used(0), table.reaped, sorted(table.states())), (0, 1, [2, 3]))
            self.assertGreater(table.peak(0), 4 * GIB)


if __name__ == "__main__":
    unittest.main()
