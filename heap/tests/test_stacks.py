"""Are the Python stacks what the interpreter itself says they are? For every Python found."""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess

import reader
from harness import PROGRAMS, HeapTest, pythons

MAX_FRAMES = 64

# Every line table of a few modules, and what the interpreter says about the first and last instruction of each range.
LINES = """
import json, sys, types, dis, asyncio.tasks, argparse
out = []
def walk(code):
    table = code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab
    if hasattr(code, "co_lines"):
        truth = [(offset, line) for start, end, line in code.co_lines() if start < end for offset in (start, end - 2)]
    else:
        starts, truth, line = dict(dis.findlinestarts(code)), [], code.co_firstlineno
        for offset in range(0, len(code.co_code), 2):
            line = starts.get(offset, line)
            truth.append((offset, line))
    out.append([list(table), code.co_firstlineno, truth])
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            walk(constant)
for module in (asyncio.tasks, argparse):
    walk(compile(open(module.__file__, encoding="utf-8").read(), module.__file__, "exec"))
json.dump([sys.version_info[1], out], sys.stdout)
"""


class StacksTest(HeapTest):
    def test_stacks_are_the_interpreters_own(self) -> None:
        for python in pythons():
            with self.subTest(python=python):
                self.setUp()
                self.compare(python)

    def compare(self, python: str) -> None:
        program = self.scratch / "stacks_größe_名.py"  # a file name of three kinds of characters
        shutil.copy(PROGRAMS / "stacks.py", program)
        truth = self.scratch / "truth.json"
        self.run_program(python, str(program), str(truth), PYTHONUTF8="1")
        expected = {
            int(size): [tuple(frame) for frame in frames] for size, frames in json.loads(truth.read_text()).items()
        }
        channel = self.read_only()
        self.assertEqual(channel.header["heap_flags"], 0)
        self.assertGreater(len(expected), 450)
        seen = {alloc.size: alloc for alloc in channel.allocs if alloc.size in expected and alloc.origin == "malloc"}
        self.assertEqual(seen.keys(), expected.keys())
        for size, frames in expected.items():
            alloc = seen[size]
            self.assertEqual(alloc.flags, 1 if len(frames) > MAX_FRAMES else 0, frames)
            self.assertEqual(channel.stack(alloc), frames[:MAX_FRAMES])
            self.assertEqual(alloc.weight, size)

    def test_the_tests_own_line_decoder(self) -> None:
        for python in pythons():
            with self.subTest(python=python):
                done = subprocess.run([python, "-c", LINES], check=True, capture_output=True, text=True)
                minor, codes = json.loads(done.stdout)
                self.assertGreater(len(codes), 150)
                for table, first, truth in codes:
                    code = reader.Code(1, first, 0x300 | minor, "", "", bytes(table))
                    self.assertEqual([code.line(offset) for offset, _ in truth], [line for _, line in truth])

    def marked(self, python: str, text: str) -> tuple[reader.Channel, list[reader.Alloc]]:
        """What a program told, and its allocations beyond 64 MiB, whose size says who made them."""
        self.setUp()
        program = self.scratch / "program.py"
        program.write_text(text)
        self.run_program(python, str(program))
        channel = self.read_only()
        return channel, [alloc for alloc in channel.allocs if alloc.size > 64 << 20]

    def test_threads_are_named_by_their_own_stacks(self) -> None:
        """Eight threads allocate at once; no stack may show another thread's frames."""
        for python in pythons():
            with self.subTest(python=python):
                channel, big = self.marked(python, THREADS)
                self.assertEqual(len(big), 8 * 50)
                for alloc in big:
                    names = {name for _, name, _ in channel.stack(alloc) if name.startswith("leaf")}
                    self.assertEqual(names, {f"leaf{(alloc.size - (64 << 20)) // 4096}"})
                self.assertGreaterEqual(len({alloc.tid for alloc in big}), 8)
                self.assertLessEqual({alloc.tid for alloc in big}, set(channel.threads))

    def test_code_that_is_thrown_away(self) -> None:
        """Code made where other code lay, run in the same frame at the same instruction, keeps its own lines."""
        for python in pythons():
            with self.subTest(python=python):
                channel, big = self.marked(python, THROWN)
                self.assertEqual(len(big), 100)
                for alloc in big:
                    self.assertEqual(channel.stack(alloc)[0][2], (alloc.size - (64 << 20)) // 4096)


THROWN = """
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
for n in range(1, 101):
    size = (64 << 20) + n * 4096
    exec("\\n" * (n - 1) + "libc.free(libc.malloc(size))")
"""

THREADS = """
import ctypes, threading
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
barrier = threading.Barrier(8)
def run(n):
    space = {"libc": libc, "size": (64 << 20) + n * 4096}
    exec("def leaf%d():\\n  libc.free(libc.malloc(size))" % n, space)
    leaf = space["leaf%d" % n]
    barrier.wait()
    for _ in range(50):
        leaf()
threads = [threading.Thread(target=run, args=(n + 1,)) for n in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
"""


def setUpModule() -> None:
    assert pythons(), "no Python 3.8 or later found: name some in HIGHTIDE_TEST_PYTHONS"
    assert pathlib.Path(PROGRAMS).is_dir()
