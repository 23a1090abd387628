"""The word, the engine's requests, the budget; and interpreters that cannot be read."""

from __future__ import annotations

import glob
import pathlib

from harness import LIBRARY, HeapTest, compiled, pythons

MIB = 1 << 20

WORD = """
import ctypes, os
library = ctypes.CDLL(None)
library.hightide_heap_word.restype = ctypes.POINTER(ctypes.c_uint64)
def word():
    return library.hightide_heap_word()
def step(n):
    word()[0] = n << 24 | 3
    return bytearray((20 + n) << 20)
inherited = word()
kept = [step(n) for n in range(5)]
if not os.fork():
    inherited[0] = 99 << 24         # before the child has a channel: reaches nobody
    more = bytearray(30 << 20)
    word()[0] = 77 << 24
    more = bytearray(31 << 20)
    os._exit(0)
os.wait()
last = bytearray(32 << 20)
"""

REQUEST = """
import ctypes
library = ctypes.CDLL(None)
library.hightide_heap_word.restype = ctypes.c_void_p
header = library.hightide_heap_word() - 256
ctypes.c_uint64.from_address(header + 224).value = 65536
first = [bytes(3000) for _ in range(3000)]
assert ctypes.c_uint64.from_address(header + 328).value == 65536
second = [bytes(3001) for _ in range(20000)]
import os; os._exit(0)
"""


class WordTest(HeapTest):
    def test_the_word_is_stamped(self) -> None:
        for python in pythons():
            with self.subTest(python=python):
                self.setUp()
                self.run_program(python, "-c", WORD)
                parent, child = self.read_all()
                words = {a.size // MIB: a.word >> 24 for a in parent.allocs if a.size >= 20 * MIB}
                self.assertEqual(words, {20: 0, 21: 1, 22: 2, 23: 3, 24: 4, 32: 4})
                words = {a.size // MIB: a.word >> 24 for a in child.allocs if a.size >= 20 * MIB}
                self.assertEqual(words, {30: 0, 31: 77})

    def test_no_channel_no_word(self) -> None:
        code = (
            "import ctypes\nw = ctypes.CDLL(None).hightide_heap_word\nw.restype = ctypes.c_void_p\nassert w() is None"
        )
        self.run_program(pythons()[-1], "-c", code, HIGHTIDE_CHANNELS="")
        self.run_program(pythons()[-1], "-c", code, HIGHTIDE_CHANNELS=str(self.scratch / "missing"))

    def test_the_engine_sets_the_mean(self) -> None:
        self.run_program(pythons()[-1], "-c", REQUEST)
        channel = self.read_only()
        second = [alloc for alloc in channel.allocs if alloc.size == 3001 + 33]
        self.assertAlmostEqual(len(second), 20000 * 3034 / 65536, delta=200)
        for alloc in second:
            self.assertAlmostEqual(alloc.weight, 65536 + 3034 / 2, delta=50)

    def test_the_budget_raises_the_mean(self) -> None:
        """Allocating as fast as it goes costs at most about the budget, and the sums stay true."""
        code = "import os\ntotal = 300000\nfor _ in range(total): bytes(100000)\nos._exit(0)"
        # A busy machine spreads the loop over more time, and so over more samples.
        settings = {"HIGHTIDE_HEAP_ADAPT": "1", "HIGHTIDE_HEAP_MEAN": "8192", "HIGHTIDE_HEAP_RING": str(64 << 20)}
        self.run_program(pythons()[-1], "-S", "-c", code, **settings)
        channel = self.read_only()
        self.assertGreater(channel.header["heap_mean_now"], 65536)
        estimate = sum(alloc.weight for alloc in channel.allocs if alloc.size == 100033)
        self.assertAlmostEqual(estimate / (300000 * 100033), 1, delta=0.15)

    def test_large_blocks_do_not_raise_the_mean(self) -> None:
        """They are recorded whatever the mean is: a program that makes many is no reason to see less of the rest."""
        code = "import os\nfor _ in range(60000): bytes(5 << 20)\nos._exit(0)"
        settings = {"HIGHTIDE_HEAP_ADAPT": "1", "HIGHTIDE_HEAP_MEAN": "524288", "HIGHTIDE_HEAP_RING": str(64 << 20)}
        self.run_program(pythons()[-1], "-S", "-c", code, **settings)
        channel = self.read_only()
        self.assertGreater(channel.header["heap_sampled"], 60000)
        self.assertEqual(channel.header["heap_mean_now"], 524288)


class UnreadableTest(HeapTest):
    def flags(self, *defines: str) -> int:
        self.setUp()
        fake = compiled("fake_python", "-shared", "-fPIC", *defines)
        self.run_program(compiled("calls"), LD_PRELOAD=f"{LIBRARY}:{fake}")
        channel = self.read_only()
        self.assertTrue(all(native for alloc in channel.allocs for _, _, native in alloc.frames))
        return channel.header["heap_flags"]

    def test_free_threaded(self) -> None:
        self.assertEqual(self.flags('-DVERSION="3.13.0"', "-DFREE_THREADED"), 8)

    def test_unknown_version(self) -> None:
        self.assertEqual(self.flags('-DVERSION="3.99.1"'), 2)
        self.assertEqual(self.flags('-DVERSION="4.0"'), 2)

    def test_a_layout_that_lies(self) -> None:
        self.assertEqual(self.flags('-DVERSION="3.11.7"', "-DGARBAGE"), 2)
        self.assertEqual(self.flags('-DVERSION="3.9.18"', "-DGARBAGE"), 2)

    def test_old_pythons_run_without_stacks(self) -> None:
        home = pathlib.Path.home()
        found = [
            path for old in ("2.7", "3.6", "3.7") for path in glob.glob(f"{home}/.pyenv/versions/{old}.*/bin/python")
        ]
        if not found:
            self.skipTest("no Python older than 3.8 here")
        for python in found:
            with self.subTest(python=python):
                self.setUp()
                self.run_program(python, "-c", "b = bytearray(9 << 20)")
                channel = self.read_only()
                self.assertIn(9 * MIB + 1, [alloc.size for alloc in channel.allocs])
                self.assertTrue(channel.header["heap_flags"] & 3)
