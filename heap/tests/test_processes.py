"""Forks of every kind, exec, threads, other allocators: who writes where."""

from __future__ import annotations

import collections
import os
import subprocess
import unittest

import reader
from harness import LIBRARY, HeapTest, compiled, pythons

MIB = 1 << 20


def big(channel: reader.Channel) -> list[int]:
    return [alloc.size // MIB for alloc in channel.allocs if alloc.size >= 4 * MIB]


class EndTest(HeapTest):
    def test_the_high_water_mark_is_told_at_the_very_end(self) -> None:
        """Of a program that grows while its interpreter ends, of one that leaves by _exit, and not of a killed one."""
        grow = "x = bytearray(b'x' * %d)\n" % (60 * MIB)
        late = "import sys\nclass Late:\n    def __del__(self):\n        x = b'x' * %d\nlate = Late()\n" % (60 * MIB)
        for ending, code in (
            ("late", late),
            ("_exit", grow + "import os; os._exit(0)"),
            ("killed", grow + "import os; os.kill(os.getpid(), 9)"),
        ):
            with self.subTest(ending=ending):
                self.setUp()
                subprocess.run([pythons()[0], "-c", code], env=self.environment(), cwd=self.scratch, timeout=600)
                (channel,) = self.read_all()
                mark = channel.header["heap_peak_rss"]
                self.assertEqual(mark > 60 * MIB and mark < 200 * MIB, ending != "killed", mark)


class ForkTest(HeapTest):
    def after(self, how: str) -> list[reader.Channel]:
        self.setUp()
        self.run_program(compiled("forks"), how)
        return self.read_all()

    def test_a_forked_child_has_its_own_channel(self) -> None:
        for how in ("fork", "raw", "clone"):
            with self.subTest(how=how):
                parent, child = self.after(how)
                self.assertEqual((big(parent), big(child)), ([5, 6], [7]))
                self.assertNotEqual(parent.header["pid"], child.header["pid"])
                self.assertEqual(len(parent.live()), 2)  # the child's free of its copy is not told
                self.assertNotEqual({alloc.tid for alloc in child.allocs}, {alloc.tid for alloc in parent.allocs})

    def test_children_of_children(self) -> None:
        channels = self.after("grandchild")
        self.assertEqual([big(channel) for channel in channels], [[5, 6], [7], [8]])

    def test_a_child_that_shares_memory_writes_nothing(self) -> None:
        for how in ("vfork", "shared"):
            with self.subTest(how=how):
                (parent,) = self.after(how)
                self.assertEqual(big(parent), [5, 6])

    def test_exec_opens_a_channel_with_a_suffix(self) -> None:
        first, second = self.after("exec")
        self.assertEqual((big(first), big(second)), ([5], [5, 7]))
        self.assertEqual(first.header["pid"], second.header["pid"])
        names = sorted(path.name for path in self.channels.iterdir())
        plain = min(names, key=len)
        self.assertEqual(set(names), {plain, plain.replace(".ring", "-2.ring")})

    def test_python_forks_and_spawns(self) -> None:
        for python in pythons():
            with self.subTest(python=python):
                self.setUp()
                program = self.scratch / "program.py"
                program.write_text(PROCESSES)
                self.run_program(python, str(program))
                found: dict[int, str] = {}
                for channel in self.read_all():
                    for alloc in channel.allocs:
                        if alloc.size >= 100 * MIB:
                            found[alloc.size // MIB] = channel.stack(alloc)[0][1]
                self.assertEqual(found, {100: "<module>", 101: "work", 102: "work", 103: "work"})


PROCESSES = """
import multiprocessing, os
def work(n):
    data = bytearray(n << 20)
if __name__ == "__main__":
    data = bytearray(100 << 20)
    for n, method in ((101, "fork"), (102, "spawn"), (103, "forkserver")):
        process = multiprocessing.get_context(method).Process(target=work, args=(n,))
        process.start()
        process.join()
        assert process.exitcode == 0
"""


class ThreadTest(HeapTest):
    def test_threads_and_signals(self) -> None:
        self.run_program(compiled("threads"), HIGHTIDE_HEAP_RING=str(64 * MIB))
        channel = self.read_only()
        self.assertGreater(len(channel.allocs), 5000)
        left = [alloc for alloc, _ in channel.live() if alloc.origin == "malloc"]
        self.assertEqual(left, [], "every block was freed")


class ForeignAllocatorTest(HeapTest):
    def test_an_allocator_behind_us(self) -> None:
        foreign = compiled("foreign", "-shared", "-fPIC")
        for python in pythons():
            with self.subTest(python=python):
                self.setUp()
                code = "import os\nkept = bytearray(9 << 20)\nfor n in range(50): bytearray(5 << 20)\nos._exit(0)"
                self.run_program(python, "-S", "-c", code, LD_PRELOAD=f"{LIBRARY}:{foreign}")
                channel = self.read_only()
                self.assertTrue(channel.header["heap_flags"] & 4)
                large = [alloc for alloc in channel.allocs if alloc.size in ((5 << 20) + 1, (9 << 20) + 1)]
                self.assertEqual(len(large), 51)  # once each: not again as the allocator's own mapping
                self.assertFalse(
                    [alloc for alloc in channel.allocs if alloc.origin == "mmap" and alloc.size >= 5 << 20]
                )
                self.assertEqual([left for _, left in channel.live() if left >= 4 * MIB], [(9 << 20) + 1])

    def test_an_allocator_before_us(self) -> None:
        """Its blocks are not ours to see; its mappings are not told in their stead."""
        foreign = compiled("foreign", "-shared", "-fPIC")
        code = "import mmap\nkept = bytearray(9 << 20)\nm = mmap.mmap(-1, 30 << 20)"
        self.run_program(pythons()[-1], "-S", "-c", code, LD_PRELOAD=f"{foreign}:{LIBRARY}")
        channel = self.read_only()
        self.assertTrue(channel.header["heap_flags"] & 16)
        self.assertEqual(big(channel), [30])

    def test_installed_allocators(self) -> None:
        tried = 0
        for library in os.environ.get("HIGHTIDE_TEST_ALLOCATORS", "").split(":"):
            for order in ("{ours}:{theirs}", "{theirs}:{ours}"):
                if not library:
                    continue
                tried += 1
                with self.subTest(library=library, order=order):
                    self.setUp()
                    code = "kept = [bytearray(9 << 20)] + [bytes(30000) for _ in range(1000)]"
                    preload = order.format(ours=LIBRARY, theirs=library)
                    self.run_program(pythons()[-1], "-c", code, LD_PRELOAD=preload)
        if not tried:
            raise unittest.SkipTest(
                "no allocator named in HIGHTIDE_TEST_ALLOCATORS (paths of libjemalloc.so.2 and its like)"
            )


class FaultTest(HeapTest):
    def test_closed_descriptors(self) -> None:
        """A script that closes everything and opens its own files never receives our bytes."""
        for python in pythons():
            with self.subTest(python=python):
                self.setUp()
                program = self.scratch / "program.py"
                program.write_text(CLOSING)
                self.run_program(python, str(program))
                for n in range(20):
                    self.assertEqual((self.scratch / f"own{n}").read_bytes(), b"mine")
                self.assertIn(60, big(self.read_only()))

    def test_moving_about(self) -> None:
        """chdir, umask, a deleted folder: the channel is open or it is not, the program runs."""
        self.run_program(
            pythons()[-1], "-c", "import os\nos.chdir('/')\nos.umask(0o777)\nb = bytearray(60 << 20)"
        )  # fmt: skip
        (path,) = self.channels.iterdir()
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        self.setUp()
        self.run_program(pythons()[-1], "-c", "b = bytearray(60 << 20)", HIGHTIDE_CHANNELS=str(self.scratch / "gone"))
        self.setUp()
        code = "import os, shutil\nb = bytearray(60 << 20)\nshutil.rmtree(os.environ['HIGHTIDE_CHANNELS'])\nc = bytearray(61 << 20)"
        self.run_program(pythons()[-1], "-c", code)
        self.assertFalse(self.channels.exists())

    def test_what_the_kernel_refuses_to_unmap_lives_on(self) -> None:
        self.run_program(compiled("refused"))
        live = collections.Counter[int]()
        for alloc, left in self.read_only().live():
            live[alloc.size // MIB] += left // MIB
        self.assertEqual(live, {20: 20, 24: 8, 4: 4, 12: 12, 28: 28}, "24 in three pieces, 32 gone")

    def test_no_room(self) -> None:
        """Nowhere to write: no channel is left behind, and no signal ends the program."""
        for limit, value in (("RLIMIT_FSIZE", 100000), ("RLIMIT_NOFILE", 3)):
            with self.subTest(limit=limit):
                self.setUp()
                # Nothing is sampled before the limit: the mean is 1 GiB, and the seed's first distance is longer.
                code = (
                    f"import resource\nresource.setrlimit(resource.{limit}, ({value}, {value}))\nb = bytearray(9 << 20)"
                )
                self.run_program(pythons()[-1], "-c", code, HIGHTIDE_HEAP_MEAN=str(1 << 30), HIGHTIDE_HEAP_SEED="1")
                self.assertEqual(list(self.channels.iterdir()), [])

    def test_full_file_system(self) -> None:
        full = self.scratch / "full"
        full.mkdir()
        mount = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(full)], capture_output=True, text=True
        )
        if mount.returncode:
            raise unittest.SkipTest(f"cannot mount a small file system: {mount.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", str(full)], check=True)
        self.run_program(pythons()[-1], "-c", "b = bytearray(60 << 20)", HIGHTIDE_CHANNELS=str(full))
        self.assertEqual(list(full.iterdir()), [])

    def test_a_full_ring_loses_no_free(self) -> None:
        """A ring of 64 KiB that nobody reads: what was recorded and freed waits to be told."""
        code = "import ctypes\nlibc = ctypes.CDLL(None)\n" + FILL
        self.run_program(pythons()[-1], "-S", "-c", code, HIGHTIDE_HEAP_RING="65536")
        (channel,) = self.read_all()
        self.assertGreater(channel.header["dropped_records"], 1000)
        live = [alloc for alloc, _ in channel.live() if alloc.size == (5 << 20) + 1]
        self.assertEqual(live, [])

    def test_daemon_threads_at_the_end(self) -> None:
        """Threads that allocate while the interpreter is torn down around them."""
        for python in pythons():
            with self.subTest(python=python):
                for _ in range(3):
                    self.setUp()
                    program = self.scratch / "program.py"
                    program.write_text(DAEMONS)
                    self.run_program(python, str(program), HIGHTIDE_HEAP_RING=str(1 << 16), HIGHTIDE_HEAP_MEAN="4096")


FILL = """
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
for p in [libc.malloc((5 << 20) + 1) for _ in range(2000)]:
    libc.free(p)
"""

CLOSING = """
import os
first = bytearray(50 << 20)
os.closerange(3, 1000)
files = [open("own%d" % n, "wb") for n in range(20)]
second = bytearray(60 << 20)
for file in files:
    file.write(b"mine")
    file.close()
os.closerange(3, 1000)
"""

DAEMONS = """
import ctypes, threading, time
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
libc.usleep.argtypes = [ctypes.c_uint]
def spin():
    while True:
        libc.free(libc.malloc(5 << 20))
        [bytes(5000) for _ in range(20)]
for _ in range(6):
    threading.Thread(target=spin, daemon=True).start()
time.sleep(0.1)
"""
