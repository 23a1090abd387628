"""The library comes into a program that runs: what is seen from then on, and that the program does not notice."""

from __future__ import annotations

import shutil
import unittest

import reader
from harness import LIBRARY, HeapTest, compiled, pythons, torch_python

MIB = 1 << 20
LATE = 32

# Takes the library in as the agent does, and allocates on lines that say so, in this thread and in another.
PYTHON = """
import ctypes, os, sys, threading
before = bytearray(40 << 20)  # BEFORE
ready, go = threading.Event(), threading.Event()
def other():
    ready.set()
    go.wait()
    global theirs
    theirs = bytearray(50 << 20)  # THEIRS
thread = threading.Thread(target=other)
thread.start()
ready.wait()
os.environ["HIGHTIDE_HEAP_LATE"] = "1"
ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
del os.environ["HIGHTIDE_HEAP_LATE"]
def take():
    return bytearray(60 << 20)  # OURS
ours = take()
go.set()
thread.join()
del before
del ours
small = [bytes(100000 + i) for i in range(2000)]  # SMALL
os._exit(0)
"""

NUMPY = """
import ctypes, os, sys, threading
import numpy
early = numpy.ones(5 << 20)  # 40 MiB
os.environ["HIGHTIDE_HEAP_LATE"] = "1"
ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
del os.environ["HIGHTIDE_HEAP_LATE"]
late = numpy.ones(6 << 20)  # LATE
del early
import torch
tensor = torch.ones(7 << 20)  # TENSOR
kept = []
def loop():
    for i in range(40):
        kept.append(torch.full((1 << 19,), float(i)) @ torch.ones(1 << 19))
        kept.append(torch.zeros(1 << 18))  # ZEROS
threads = [threading.Thread(target=loop) for _ in range(3)]
[t.start() for t in threads]
[t.join() for t in threads]
"""

MOVE = """
import ctypes, os, sys, threading
os.environ["HIGHTIDE_HEAP_LATE"] = "1"
library = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
stop = []
def work():
    while not stop:
        blocks = [bytearray(100000 + i) for i in range(50)]
threads = [threading.Thread(target=work) for _ in range(3)]
[t.start() for t in threads]
first = bytearray(10 << 20)
for n in range(20):
    os.mkdir("second%d" % n)
    assert library.hightide_heap_move(os.fsencode(os.path.abspath("second%d" % n))) == 1
    kept = bytearray((20 + n) << 20)
    if n == 10 and os.fork() == 0:
        child = bytearray(50 << 20)
        os._exit(0)
del first
stop.append(1)
[t.join() for t in threads]
assert library.hightide_heap_move(b"no path") == 0
"""


class LateTest(HeapTest):
    def environment(self, **settings: str) -> dict[str, str]:
        return super().environment(**{"LD_PRELOAD": "", "HIGHTIDE_HEAP_RING": str(16 << 20), **settings})

    def libraries(self) -> tuple[str, str]:
        """A library that is there before and one that comes later; a third in a folder that only they know."""
        built = compiled("late_lib", "-shared", "-fPIC", "-Wl,-rpath,$ORIGIN/sub,--enable-new-dtags,-z,relro,-z,now")
        (self.scratch / "sub").mkdir()
        for name in ("libearly.so", "liblater.so", "sub/libinner.so"):
            shutil.copy(built, self.scratch / name)
        return str(self.scratch / "libearly.so"), str(self.scratch / "liblater.so")

    def test_what_is_seen_from_then_on(self) -> None:
        for name, flags in {
            "usual": ("-fPIE", "-pie", "-Wl,-z,relro,-z,now"),
            "lazy": ("-fPIE", "-pie", "-Wl,-z,relro,-z,lazy"),
            "fixed": ("-fno-pie", "-no-pie", "-Wl,-z,lazy"),
            "unprotected": ("-fPIE", "-pie", "-Wl,-z,norelro"),
            "without stubs": ("-fPIE", "-pie", "-fno-plt"),
        }.items():
            with self.subTest(program=name):
                self.setUp()
                program = compiled("late", *flags, "-ldl")
                self.run_program(program, str(LIBRARY), *self.libraries(), "20")
                self.check(*self.read_all(), by_stub=name == "fixed")

    def check(self, parent: reader.Channel, child: reader.Channel, by_stub: bool) -> None:
        self.assertTrue(parent.header["heap_flags"] & LATE)
        kept = [size * MIB for size in (7, 8, 9, 10, 11, 12) if size != 11 or by_stub]  # 11: by an address taken before
        self.assertEqual(
            sorted(a.size for a in parent.allocs if a.size >= 5 * MIB), sorted([6 * MIB, 7 * MIB + 1, *kept])
        )
        self.assertEqual(sorted(alloc.size for alloc, _ in parent.live() if alloc.size >= 4 * MIB), kept)
        self.assertEqual(len([a for a in parent.allocs if a.size == 4 * MIB + 4096]), 20)
        self.assertGreater(len({alloc.tid for alloc in parent.allocs}), 4)
        self.assertEqual([alloc.size for alloc in child.allocs if alloc.size >= 4 * MIB], [13 * MIB])
        self.assertEqual(parent.header["heap_untracked"], 0)

    def test_threads_do_not_notice(self) -> None:
        """Again and again, libraries coming and going all the while."""
        program = compiled("late", "-fPIE", "-pie", "-ldl")
        for _ in range(10):
            self.setUp()
            self.run_program(program, str(LIBRARY), *self.libraries(), "100")

    def test_without_a_recording_nothing_is_touched(self) -> None:
        program = compiled("late", "-fPIE", "-pie", "-ldl")
        self.run_program(program, str(LIBRARY), *self.libraries(), "1", HIGHTIDE_CHANNELS="")
        self.assertEqual(self.read_all(), [])

    def lines(self, python: str, text: str) -> tuple[reader.Channel, dict[str, int]]:
        """What it told, and the bytes of each line of the program by the comment there."""
        self.setUp()
        program = self.scratch / "program.py"
        program.write_text(text)
        self.run_program(python, str(program), str(LIBRARY))
        channel = self.read_only()
        marks = {n: line.rpartition("# ")[2] for n, line in enumerate(text.splitlines(), 1)}
        sums: dict[str, int] = {}
        for alloc in channel.allocs:
            for name, _, line in channel.stack(alloc):
                if name == "program.py":
                    mark = marks[line or 0]
                    sums[mark] = sums.get(mark, 0) + alloc.weight
                    break
        return channel, sums

    def test_lines_of_python(self) -> None:
        for python in pythons():
            with self.subTest(python=python):
                channel, sums = self.lines(python, PYTHON)
                self.assertEqual(channel.header["heap_flags"], LATE)
                self.assertGreater(channel.header["heap_peak_rss"], 100 * MIB)  # told at the very end
                self.assertEqual((sums["THEIRS"] >> 20, sums["OURS"] >> 20), (50, 60))
                self.assertEqual([a for a in channel.allocs if a.size >> 20 == 40], [])
                self.assertLess(abs(sums["SMALL"] / (2000 * 101000) - 1), 0.3)
                self.assertEqual([a.size >> 20 for a, _ in channel.live() if a.size >= 40 * MIB], [50])

    def test_one_recording_after_the_other(self) -> None:
        """Whole records in each, whatever threads do meanwhile, and nothing of the one before."""
        program = self.scratch / "program.py"
        program.write_text(MOVE)
        self.run_program(pythons()[-1], str(program), str(LIBRARY))
        self.assertEqual([a.size >> 20 for a in self.read_only().allocs if a.size >= 10 * MIB], [10])
        for n in range(20):
            channels = [reader.read(path) for path in sorted((self.scratch / f"second{n}").iterdir())]
            large = sorted([a.size >> 20 for a in c.allocs if a.size >= 10 * MIB] for c in channels)
            self.assertEqual(large, [[20 + n], [50]] if n == 10 else [[20 + n]])
            self.assertFalse([f for c in channels for f in c.frees if f.address not in {a.address for a in c.allocs}])

    @unittest.skipUnless(torch_python(), "no Python with torch here")
    def test_numpy_and_torch(self) -> None:
        channel, sums = self.lines(str(torch_python()), NUMPY)
        self.assertEqual(sums["LATE"] >> 20, 48)
        self.assertEqual(sums["TENSOR"] >> 20, 28)
        self.assertLess(abs(sums["ZEROS"] / (120 * MIB) - 1), 0.5)
        self.assertEqual([a for a in channel.allocs if a.size == 40 * MIB], [])


if __name__ == "__main__":
    unittest.main()
