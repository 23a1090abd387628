"""Tensors of PyTorch and arrays of NumPy are blamed on the lines that made them."""

from __future__ import annotations

import subprocess
import unittest

import reader
from harness import HeapTest, torch_python

MIB = 1 << 20

PROGRAM = """
import threading
import numpy, torch
torch.set_num_threads(2)
MIB = 1 << 20
model = torch.nn.Linear(1024, 5 * 1024, bias=False)  # at weights 20
inputs = torch.ones(1024, 1024)  # at inputs 4
for _ in range(3):
    output = model(inputs)  # at output 20
    loss = output.relu().sum()  # at relu 20
    loss.backward()  # at gradient 20
    model.weight.grad = None
array = numpy.zeros(33 * MIB, numpy.uint8)  # at numpy 33
half = array.astype(numpy.float16)  # at astype 66
def thread():
    global kept
    kept = torch.full((9 * MIB,), 1, dtype=torch.uint8)  # at thread 9
worker = threading.Thread(target=thread)
worker.start()
worker.join()
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, i):
        return torch.full((7 * MIB,), i, dtype=torch.uint8)  # at item 7
for batch in torch.utils.data.DataLoader(Data(), num_workers=1):
    pass
import os; os._exit(0)
"""


class TorchTest(HeapTest):
    def setUp(self) -> None:
        super().setUp()
        found = torch_python()
        if not found:
            raise unittest.SkipTest("no Python with torch: name one in HIGHTIDE_TEST_TORCH")
        self.python = found

    def test_tensors_and_arrays(self) -> None:
        program = self.scratch / "train.py"
        program.write_text(PROGRAM)
        self.run_program(self.python, str(program), HIGHTIDE_HEAP_RING=str(32 * MIB), HIGHTIDE_HEAP_MEAN=str(64 * MIB))
        main, *workers = self.read_all()
        self.assertTrue(workers, "the DataLoader's worker has a channel")
        found = self.blamed(main) | self.blamed(workers[0])
        for number, line in enumerate(PROGRAM.splitlines(), 1):
            if "# at " in line:
                name, mib = line.split("# at ")[1].split()
                self.assertIn((number, int(mib)), found, f"{name}: {sorted(found)}")
        kept = {alloc.size // MIB for alloc, _ in main.live()}
        self.assertLessEqual({20, 4, 33, 66, 9}, kept)

    def blamed(self, channel: reader.Channel) -> set[tuple[int | None, int]]:
        """(line of the program, MiB) of each large allocation, whichever frames of torch lie between."""
        found = set()
        for alloc in channel.allocs:
            lines = [line for file, _, line in channel.stack(alloc) if file == "train.py"]
            if lines and alloc.size >= 4 * MIB:
                found.add((lines[0], alloc.size // MIB))
        return found

    def test_the_gil_is_mostly_released(self) -> None:
        """What the design rests on: torch allocates without the GIL, so who holds it tells nothing."""
        program = self.scratch / "train.py"
        program.write_text(
            "import threading, torch\n"
            "def spin():\n"
            "    while not done: pass\n"
            "done = False\n"
            "threads = [threading.Thread(target=spin) for _ in range(2)]\n"
            "[t.start() for t in threads]\n"
            "for _ in range(40):\n"
            "    x = torch.empty(6 << 20, dtype=torch.uint8).fill_(1) + 1\n"
            "done = True\n"
        )
        self.run_program(self.python, str(program), HIGHTIDE_HEAP_RING=str(32 * MIB), HIGHTIDE_HEAP_MEAN=str(64 * MIB))
        channel = self.read_only()
        tensors = [alloc for alloc in channel.allocs if alloc.size == 6 << 20]
        self.assertEqual(len(tensors), 80)
        for alloc in tensors:
            self.assertEqual(channel.stack(alloc)[0], ("train.py", "<module>", 8))

    def test_results_are_the_same(self) -> None:
        code = "import torch; torch.manual_seed(1); print(torch.randn(300, 300).svd()[1].sum().item())"
        plain = subprocess.run([self.python, "-c", code], check=True, capture_output=True, text=True).stdout
        self.assertEqual(self.run_program(self.python, "-c", code).stdout, plain)
