"""Build a release twice, in two folders, and hold what came out against each other and against what a release promises.

python3 scripts/release_test.py      (with the tools environment's Python)
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path

import inturn
import release
from release import ROOT, TARGETS, VERSION, packed

sys.path.append(str(ROOT / "packaging"))
from hatch_build import TAGS

MOST_PROGRAM, MOST_WHEEL = 40_000_000, 15_000_000  # bytes


def copy(to: Path) -> None:
    """The sources as they are, with nothing that was built."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    names = [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).exists()]
    to.mkdir(parents=True)
    command = ["cp", "--parents", "-a", *names, str(to)]
    subprocess.run(command, cwd=ROOT, check=True)
    packages = [ROOT / "web" / "node_modules", to / "web" / "node_modules"]
    if subprocess.run(["cp", "-al", *packages], stderr=subprocess.DEVNULL).returncode:  # another file system
        subprocess.run(["cp", "-aT", *packages], check=True)


def made(folder: Path) -> Path:
    """A release, from sources in a folder of their own."""
    copy(folder)
    env = {**os.environ, "SOURCE_DATE_EPOCH": str(release.moment())}
    # what the checks have compiled of other modules is taken; what is ours, and every program, is made anew
    for command in (["make", "-s", "heap", "device", "web", "cross"], [sys.executable, "scripts/release.py", "dist"]):
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "dist"


def the_same_again(first: Path, second: Path) -> None:
    names = sorted(file.name for file in first.iterdir())
    assert names == sorted(file.name for file in second.iterdir()), names
    differ = [name for name in names if (first / name).read_bytes() != (second / name).read_bytes()]
    assert not differ, f"built twice, these differ: {differ}"


def what_is_announced(first: Path, _: Path) -> None:
    """Checksums of all other files, and no more files than are meant."""
    listed = (line.split("  ") for line in (first / "SHA256SUMS").read_text().splitlines())
    sums = {name: checksum for checksum, name in listed}
    assert sums == {
        file.name: sha256(file.read_bytes()).hexdigest() for file in first.iterdir() if file.name != "SHA256SUMS"
    }
    assert len(sums) == 2 * len(TARGETS) + 2 * 2 + 1, sorted(sums)


def kind(program: bytes) -> str:
    """The system and the processor that a program is for, by its first bytes."""
    if program[:4] == b"\x7fELF":
        return "linux/" + {62: "amd64", 183: "arm64"}[struct.unpack_from("<H", program, 18)[0]]
    if program[:4] == b"\xcf\xfa\xed\xfe":
        return "darwin/" + {0x1000007: "amd64", 0x100000C: "arm64"}[struct.unpack_from("<I", program, 4)[0]]
    assert program[:2] == b"MZ", program[:4]
    return (
        "windows/"
        + {0x8664: "amd64"}[struct.unpack_from("<H", program, struct.unpack_from("<I", program, 60)[0] + 4)[0]]
    )


def in_archive(folder: Path, target: str) -> dict[str, bytes]:
    """The files of a target's archive, without the folder that they are in."""
    (file,) = folder.glob(f"hightide-{VERSION}-{target.replace('/', '-')}.*")
    if file.suffix == ".zip":
        with zipfile.ZipFile(file) as opened:
            files = {name: opened.read(name) for name in opened.namelist()}
    else:
        with tarfile.open(file) as tar:
            files = {one.name: tar.extractfile(one).read() for one in tar}  # type: ignore[union-attr]
    return {name.split("/", 1)[1]: data for name, data in files.items()}


def the_right_program(first: Path, _: Path) -> None:
    """Archive and wheel of each target have its program, the same; no larger than is promised."""
    for target in TARGETS:
        files = in_archive(first, target)
        name = "hightide.exe" if target.startswith("windows") else "hightide"
        program = files[name]
        assert kind(program) == target and len(program) <= MOST_PROGRAM, (target, kind(program), len(program))
        wheel = first / f"hightide-{VERSION}-py3-none-{TAGS[target]}.whl"
        assert wheel.stat().st_size <= MOST_WHEEL, (wheel.name, wheel.stat().st_size)
        with zipfile.ZipFile(wheel) as opened:
            assert opened.read(f"hightide-{VERSION}.data/scripts/{name}") == program, wheel.name
        for library in ("heap", "device"):
            paths = [f"packed/{processor}/libhightide_{library}.so.gz" for processor in ("amd64", "arm64")]
            carried = [f"linux/{path.split('/')[1]}" for path in paths if path.encode() in program]
            assert carried == [target] * target.startswith("linux"), (target, carried)
        assert {"LICENSE", "man/man1/hightide-run.1", "completions/hightide", "completions/_hightide"} <= files.keys()


def packages(first: Path, _: Path) -> None:
    """Debian's packages unpack to the program, its pages and completions; Red Hat's say what they are for."""
    for processor, of_rpm in (("amd64", "x86_64"), ("arm64", "aarch64")):
        files = in_archive(first, f"linux/{processor}")
        with tempfile.TemporaryDirectory() as name:
            (file,) = first.glob(f"*_{processor}.deb")
            subprocess.run(["dpkg-deb", "-x", file, name], check=True)
            there = {str(one.relative_to(name)): one.read_bytes() for one in Path(name).rglob("*") if one.is_file()}
            assert os.access(Path(name) / "usr/bin/hightide", os.X_OK)
        assert there["usr/bin/hightide"] == files["hightide"]
        assert there["usr/share/man/man1/hightide.1.gz"] == packed(files["man/man1/hightide.1"])
        assert there["usr/share/bash-completion/completions/hightide"] == files["completions/hightide"]
        (rpm,) = first.glob(f"*.{of_rpm}.rpm")
        head = rpm.read_bytes()[:96]
        assert head[:4] == b"\xed\xab\xee\xdb" and head[10:].startswith(f"hightide-{VERSION}-1".encode()), head


def what_is_inside(first: Path, _: Path) -> None:
    """The bill names what the program is linked with, and what the pages are made of."""
    bill = json.loads((first / f"hightide-{VERSION}.cdx.json").read_text())
    names = {part["name"] for part in bill["components"]}
    required = (ROOT / "go.mod").read_text()
    assert {"github.com/spf13/cobra", "modernc.org/sqlite"} <= names, names
    assert all(name in required for name in names if "/" in name and name[0] != "@"), names
    shipped = json.loads((ROOT / "web" / "package.json").read_text()).get("dependencies", {})
    assert set(shipped) <= names, shipped


TESTS: list[Callable[[Path, Path], None]] = [
    the_same_again,
    what_is_announced,
    the_right_program,
    packages,
    what_is_inside,
]


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="hightide-release-") as name:
        first, second = made(Path(name) / "one"), made(Path(name) / "another" / "place")
        return inturn.run((test.__name__, partial(test, first, second)) for test in TESTS)


if __name__ == "__main__":
    sys.exit(main())
