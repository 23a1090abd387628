"""Run programs under the real library and read what it wrote."""

from __future__ import annotations

import glob
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import reader

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
LIBRARY = HERE.parent / "lib" / "libhightide_heap.so"
BUILD = HERE.parent / "build" / "programs"


def pythons() -> list[str]:
    """Interpreters to test with: $HIGHTIDE_TEST_PYTHONS (colon-separated), else all that are found."""
    named = os.environ.get("HIGHTIDE_TEST_PYTHONS")
    if named:
        return named.split(":")
    found = [
        path
        for minor in range(8, 15)
        for path in sorted(glob.glob(f"{pathlib.Path.home()}/.pyenv/versions/3.{minor}.*/bin/python3"))
    ]
    seen = {os.path.realpath(path) for path in found}
    for name in ["python3", "/usr/bin/python3", *(f"python3.{minor}" for minor in range(8, 15))]:
        path = shutil.which(name)
        if path and "shims" not in path and os.path.realpath(path) not in seen:
            seen.add(os.path.realpath(path))
            found.append(path)
    return found


def torch_python() -> str | None:
    """An interpreter that has torch: $HIGHTIDE_TEST_TORCH, else the project's cached environment."""
    named = os.environ.get("HIGHTIDE_TEST_TORCH")
    cached = sorted(glob.glob(f"{pathlib.Path.home()}/.cache/hightide/torch-*/bin/python"))
    return named or (cached[-1] if cached else None)


def compiled(name: str, *flags: str) -> str:
    """Build programs/NAME.c; the path of the program (or, with -shared, of the library)."""
    BUILD.mkdir(parents=True, exist_ok=True)
    target = BUILD / name
    command = ["gcc", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fno-builtin", "-fno-omit-frame-pointer"]
    subprocess.run([*command, "-o", str(target), str(PROGRAMS / f"{name}.c"), "-lpthread", *flags], check=True)
    return str(target)


class HeapTest(unittest.TestCase):
    """A scratch folder, and the library in it."""

    def setUp(self) -> None:
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="hightide-heap-"))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)
        self.channels = self.scratch / "channels"
        self.channels.mkdir()

    def environment(self, **settings: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HIGHTIDE_")}
        defaults = {
            "LD_PRELOAD": str(LIBRARY),
            "HIGHTIDE_CHANNELS": str(self.channels),
            "HIGHTIDE_HEAP_RING": str(4 << 20),  # nobody drains it here
            "HIGHTIDE_HEAP_ADAPT": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        return kept | defaults | settings

    def run_program(self, *command: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run to the end; a program that fails fails the test, with what it printed."""
        done = subprocess.run(
            command, env=self.environment(**settings), cwd=self.scratch, capture_output=True, text=True, timeout=600
        )
        self.assertEqual(done.returncode, 0, f"{command}: {done.stdout}{done.stderr}")
        return done

    def read_all(self) -> list[reader.Channel]:
        """Every channel, in the order of creation; nothing else may lie in the folder."""
        paths = list(self.channels.iterdir())
        self.assertTrue(all(path.name.startswith("heap-") and path.suffix == ".ring" for path in paths), paths)
        channels = [reader.read(path) for path in paths]
        return sorted(channels, key=lambda channel: channel.header["created_mono_ns"])

    def read_only(self) -> reader.Channel:
        channels = self.read_all()
        self.assertEqual(len(channels), 1, [path.name for path in self.channels.iterdir()])
        self.assertEqual(channels[0].header["dropped_records"], 0)
        return channels[0]
