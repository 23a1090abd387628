"""Build hightide for the other systems, and use what was built there as far as it runs here.

    python3 scripts/platforms.py       (scripts/setup platforms gets the emulators)

linux/arm64 runs under qemu, Windows under Wine, both for real: what they say of a file is held against this machine's
own, byte by byte. macOS is compiled alone, as nothing here runs it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request
from collections.abc import Callable
from pathlib import Path

from torchversions import CACHE, ROOT

sys.path.append(str(ROOT / "heap" / "tests"))
import reader

OUT = ROOT / "build" / "platforms"
TARGETS = ("linux/arm64", "darwin/arm64", "windows/amd64")
ARM = CACHE / "platforms" / "arm64"  # a Python of Debian's, with its libraries
PREFIX = CACHE / "platforms" / "wine"
WINE = "/usr/lib/wine/wine64"
SECONDS = 300  # that one program may take

# What is said of files, in words behind the program's name; each ends with 0.
READ = (
    ["explain", "testdata/real/h100-lm-ctx128-train-step.pickle", "--json"],
    ["explain", "testdata/real/h100-lm-ctx256-forward-bf16.pickle", "--top", "5"],
    ["explain", "internal/format/telemetry/testdata/nvidia-smi.txt", "--json"],
    ["explain", "internal/format/oomtext/testdata/xla-tpu.txt", "--json"],
    ["explain", "internal/format/testdata/jax-device-memory.pb.gz", "--json"],
    ["show", "testdata/recording/v1-every-kind.hightide", "--json"],
    ["show", "testdata/recording/v1-imagined.hightide"],
    ["diff", "testdata/real/h100-lm-ctx128-train-step.pickle", "testdata/real/h100-lm-ctx256-forward-bf16.pickle", "--json"],
    ["replay", "testdata/real/h100-lm-ctx128-train-step.pickle", "--json"],
    ["gpus", "--json"],
)  # fmt: skip
OBSERVE = (["run", "--", "python", "x.py"], ["top", "--once"], ["imagine", "--gpu", "a10", "--", "python", "x.py"])


def build() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    for target in TARGETS:
        system, processor = target.split("/")
        env = {**os.environ, "GOOS": system, "GOARCH": processor, "CGO_ENABLED": "0", "GOGC": "400"}
        subprocess.run(
            ["go", "build", "-trimpath", "-o", OUT / f"hightide-{system}-{processor}{'.exe' * (system == 'windows')}",
             "./cmd/hightide"], cwd=ROOT, env=env, check=True,
        )  # fmt: skip


class There:
    """A built program, and how it is run here."""

    def __init__(self, name: str, before: list[str], env: dict[str, str], home: Path) -> None:
        self.command = [*before, str(OUT / name)]
        self.env = {**os.environ, **env, "HOME": str(home), "HIGHTIDE_DATA": str(home / "data"), "LC_ALL": "C.UTF-8"}

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command, *words], cwd=ROOT, env=self.env, capture_output=True, text=True, timeout=SECONDS
        )


def arm(home: Path) -> There:
    return There("hightide-linux-arm64", ["qemu-aarch64-static"], {}, home)


def windows(home: Path) -> There:
    return There("hightide-windows-amd64.exe", [WINE], {"WINEPREFIX": str(PREFIX), "WINEDEBUG": "-all"}, home)


def here(home: Path) -> There:
    there = There("", [], {}, home)
    there.command = [str(ROOT / "bin" / "hightide")]
    return there


def says_the_same(there: Callable[[Path], There], home: Path) -> None:
    """Files are read as here, to the byte; lines may end in another way."""
    theirs, ours = there(home), here(home)
    for words in READ:
        want, got = ours(*words), theirs(*words)
        assert want.returncode == 0 and want.stdout, want.stderr
        assert got.returncode == 0, f"{words}: {got.stderr}"
        assert got.stdout.replace("\r\n", "\n") == want.stdout, f"{words}: differs from what is said here"


def arm_says_the_same(home: Path) -> None:
    says_the_same(arm, home)


def windows_says_the_same(home: Path) -> None:
    says_the_same(windows, home)


def says_what_it_cannot(there: There, name: str) -> None:
    for words in OBSERVE:
        done = there(*words)
        assert done.returncode == 4 and f"takes Linux on x86-64: on {name}" in done.stderr, (words, done)


def arm_says_what_it_cannot(home: Path) -> None:
    says_what_it_cannot(arm(home), "Linux on arm64")


def windows_says_what_it_cannot(home: Path) -> None:
    there = windows(home)
    says_what_it_cannot(there, "Windows")
    assert there("ls").stdout.startswith("No runs."), there("ls")
    done = there("explain", "no-such-file.pickle")
    assert done.returncode == 3 and "no-such-file.pickle" in done.stderr, done


def windows_serves_pages(home: Path) -> None:
    there = windows(home)
    server = subprocess.Popen(
        [*there.command, "ui", "--addr", "127.0.0.1:0", "testdata/real/h100-lm-ctx128-train-step.pickle"],
        cwd=ROOT, env=there.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        until, said = time.monotonic() + SECONDS, ""
        while not (address := re.search(r"http://\S+", said)) and time.monotonic() < until:
            line = server.stdout.readline()
            assert line, f"the server ended: {said}"
            said += line
        assert address, said
        with urllib.request.urlopen(address[0], timeout=60) as page:
            assert b"<title>" in page.read()
    finally:
        server.kill()
        server.wait()


def arm_heap(home: Path) -> None:
    """The sampler, cross-compiled: its own tests, then a Python program's lines."""
    for folder in ("heap", "common", "include"):
        shutil.copytree(ROOT / folder, home / folder, ignore=shutil.ignore_patterns("build", "lib", "packed"))
    make = ["make", "--no-print-directory", "-C", str(home / "heap"), "CC=aarch64-linux-gnu-gcc"]
    parts = ("lib/libhightide_heap.so", "build/unit-plain", "build/stress-plain")
    subprocess.run([*make, *parts], check=True, capture_output=True)
    for test in parts[1:]:
        subprocess.run(
            ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu", home / "heap" / test],
            check=True, capture_output=True, timeout=SECONDS,
        )  # fmt: skip
    channels = home / "channels"
    channels.mkdir()
    program = "kept = []\ndef grow():\n    kept.append(bytearray(6 << 20))\nfor _ in range(5):\n    grow()\n"
    subprocess.run(
        ["qemu-aarch64-static", "-L", ARM, "-E", f"LD_PRELOAD={home / 'heap' / parts[0]}",
         "-E", f"HIGHTIDE_CHANNELS={channels}", "-E", "HIGHTIDE_HEAP_RING=4194304", ARM / "usr/bin/python3.11", "-c", program],
        check=True, timeout=SECONDS,
    )  # fmt: skip
    (ring,) = channels.glob("heap-*.ring")
    channel = reader.read(ring)
    large = [event for event in channel.events if isinstance(event, reader.Alloc) and event.size > 6 << 20]
    assert len(large) == 5, large
    for alloc in large:
        code, at, _ = alloc.frames[0]
        assert (channel.codes[code].name, channel.codes[code].line(at)) == ("grow", 3), alloc


def main() -> int:
    build()
    tests = (
        arm_says_the_same,
        arm_says_what_it_cannot,
        arm_heap,
        windows_says_the_same,
        windows_says_what_it_cannot,
        windows_serves_pages,
    )
    failed = 0
    for test in tests:
        with tempfile.TemporaryDirectory(prefix="hightide-platforms-") as folder:
            try:
                test(Path(folder))
            except Exception:
                failed += 1
                print(f"FAILED {test.__name__}", flush=True)
                traceback.print_exc(file=sys.stdout)
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
