"""Are the sampled bytes true, within the stated error, and are frees matched?"""

from __future__ import annotations

import collections
import math
import subprocess

from harness import HeapTest, compiled, pythons

MIB = 1 << 20
MEAN = 512 << 10


class SamplingTest(HeapTest):
    def test_one_hundred_seeds(self) -> None:
        """At most 5 of 100 estimates are off by more than two standard errors, sqrt(mean * bytes)."""
        program, mean = compiled("mix"), MEAN // 4  # of few bytes, often
        off = collections.Counter[str]()
        sums = collections.Counter[str]()
        truth = {}
        for seed in range(1, 101):
            self.setUp()
            done = self.run_program(
                program, HIGHTIDE_HEAP_SEED=str(seed), HIGHTIDE_HEAP_RING=str(1 << 20), HIGHTIDE_HEAP_MEAN=str(mean)
            )
            channel = self.read_only()
            truth["total"], truth["alive"] = map(int, done.stdout.split())
            estimate = {
                "total": sum(alloc.weight for alloc in channel.allocs),
                "alive": sum(alloc.weight for alloc, _ in channel.live()),
            }
            for what, value in estimate.items():
                sums[what] += value
                off[what] += abs(value - truth[what]) > 2 * math.sqrt(mean * truth[what])
            self.assertEqual({alloc.origin for alloc in channel.allocs}, {"malloc", "calloc", "aligned"})
        for what, true in truth.items():
            error = math.sqrt(mean * true)
            self.assertLessEqual(off[what], 5, f"{what}: {off[what]} of 100 off by more than {2 * error / true:.1%}")
            # Unbiased: the mean of a hundred is within three of its own standard errors.
            self.assertLess(abs(sums[what] / 100 - true), 3 * error / 10, what)

    def test_a_seed_repeats_itself(self) -> None:
        program = compiled("mix")
        runs = []
        for _ in range(2):
            self.setUp()
            self.run_program(program, HIGHTIDE_HEAP_SEED="5")
            runs.append([(alloc.size, alloc.origin) for alloc in self.read_only().allocs])
        self.assertEqual(*runs)

    def test_every_entry_point(self) -> None:
        self.run_program(compiled("calls"))
        channel = self.read_only()
        big = [alloc for alloc in channel.allocs if alloc.size >= 4 * MIB]
        sizes = collections.Counter((alloc.size // MIB, alloc.origin) for alloc in big)
        heap = {(5, "malloc"), (6, "calloc"), (7, "realloc"), (8, "malloc"), (9, "malloc"), (10, "aligned"),
                (11, "aligned"), (12, "aligned"), (13, "aligned"), (14, "aligned"), (15, "malloc"), (16, "malloc")}  # fmt: skip
        maps = {(20, "mmap"), (22, "mmap"), (24, "mmap"), (32, "mmap"), (40, "mmap"), (44, "mmap"), (48, "mmap-shared"),
                (50, "mmap-shared"), (15, "realloc")}  # fmt: skip
        pieces = {(20, "mmap"), (16, "mmap")}  # what remained behind a hole
        self.assertEqual(sizes, collections.Counter(heap) + collections.Counter(maps) + collections.Counter(pieces))
        failed = collections.Counter(alloc.origin for alloc in channel.failed)
        self.assertEqual(failed, {"realloc": 1, "malloc": 3})  # a product that overflows asks for nothing
        alive = sorted(left // MIB for alloc, left in channel.live() if alloc.size >= 4 * MIB)
        self.assertEqual(alive, [7, 8, 9, 10, 11, 12, 15, 16, 18, 20, 44, 50])
        for alloc in big:
            if alloc.size // MIB != 15 or alloc.origin != "realloc":
                self.assertEqual(alloc.weight, alloc.size)
            self.assertEqual(alloc.flags, 2)  # no Python here
            self.assertTrue(alloc.frames and all(native for _, _, native in alloc.frames))

    def test_a_mapped_file_is_no_allocation_unless_it_lies_in_memory(self) -> None:
        kind = subprocess.run(["stat", "-f", "-c", "%T", str(self.scratch)], capture_output=True, text=True).stdout
        if kind.strip() in ("", "tmpfs", "ramfs"):
            self.skipTest("files lie in memory here, or nobody says where")
        code = (
            "import mmap, os\nkept = []\n"
            "for mib, fd in (21, os.open('file', os.O_RDWR | os.O_CREAT)), (23, os.memfd_create('shared')):\n"
            "    os.ftruncate(fd, mib << 20)\n    kept.append(mmap.mmap(fd, mib << 20))"
        )
        self.run_program(pythons()[-1], "-S", "-c", code)
        self.assertEqual([a.size // MIB for a in self.read_only().allocs if a.size >= 20 * MIB], [23])

    def test_nothing_is_lost_while_the_channel_is_opened(self) -> None:
        """Threads that allocate for the first time all at once: one opens the channel, the others' blocks are told too."""
        program = compiled("together")
        for _ in range(20):
            self.setUp()
            self.run_program(program)
            self.assertEqual(sum(alloc.size == 4 * MIB for alloc in self.read_only().allocs), 8)

    def test_no_python_is_said(self) -> None:
        self.run_program(compiled("calls"))
        self.assertEqual(self.read_only().header["heap_flags"], 1)

    def test_small_objects_of_python_are_freed(self) -> None:
        """A list that comes and goes 200 times: what is alive at the end is not 200 of them."""
        for python in pythons():
            with self.subTest(python=python):
                self.setUp()
                code = "import os\nfor _ in range(200):\n  kept = [bytes(20000) for _ in range(100)]\nos._exit(0)"
                self.run_program(python, "-S", "-c", code)
                channel = self.read_only()
                total = sum(alloc.weight for alloc in channel.allocs if alloc.size == 20033)
                alive = sum(alloc.weight for alloc, _ in channel.live() if alloc.size == 20033)
                self.assertLess(abs(total - 200 * 100 * 20033), 5 * math.sqrt(MEAN * total))
                self.assertLess(alive, 3 * 100 * 20033 + 5 * math.sqrt(MEAN * 2 * 100 * 20033))

    def test_no_run_no_channel(self) -> None:
        self.run_program(compiled("calls"), HIGHTIDE_CHANNELS="")
        self.assertEqual(list(self.channels.iterdir()), [])
