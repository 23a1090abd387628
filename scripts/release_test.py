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


def installed(packager: str, root: Path, *words: str | Path) -> str:
    """Run dpkg or rpm on a folder that stands for the machine's root; what it prints."""
    if packager == "deb":
        state = root / "var" / "lib" / "dpkg"
        for folder in ("info", "updates", "triggers"):
            (state / folder).mkdir(parents=True, exist_ok=True)
        (state / "status").touch()
        command: list[str | Path] = ["dpkg", f"--root={root}", "--force-not-root,architecture", *words]
    else:
        command = ["rpm", f"--root={root}", "--dbpath=/var/lib/rpm", *words]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"})  # fmt: skip
    assert done.returncode == 0, done
    return done.stdout


def files_of(root: Path) -> dict[str, Path]:
    """What lies in a folder, without what the packagers keep for themselves."""
    found = {str(one.relative_to(root)): one for one in root.rglob("*") if one.is_file()}
    return {name: one for name, one in found.items() if not name.startswith(("var/lib/dpkg/", "var/lib/rpm/", "var/log/"))}  # fmt: skip


def packages(first: Path, _: Path) -> None:
    """Debian's and Red Hat's packages are installed: the program runs, its pages and completions lie where they are looked for,
    and nothing is left once they are removed."""
    both = {"deb": ("-i", "-r", "-L"), "rpm": ("-i", "-e", "-ql")}
    for processor, of_rpm in (("amd64", "x86_64"), ("arm64", "aarch64")):
        files = in_archive(first, f"linux/{processor}")
        for packager, (install, remove, contents) in both.items():
            (package,) = first.glob(f"*_{processor}.deb" if packager == "deb" else f"*.{of_rpm}.rpm")
            with tempfile.TemporaryDirectory() as name:
                root = Path(name)
                installed(packager, root, install, *["--ignorearch", "--nodeps"] * (packager == "rpm"), package)
                there = files_of(root)
                program = there["usr/bin/hightide"]
                assert os.access(program, os.X_OK) and program.read_bytes() == files["hightide"]
                if processor == "amd64":
                    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
                    assert VERSION in said, said
                placed = {release.place(packager, name): data for name, data in files.items()}
                laid = {at: packed(data) if at.endswith(".gz") else data for at, data in placed.items() if at}
                assert sum("/man/man1/hightide-" in at for at in laid) > 10 and len(laid) > 15, sorted(laid)
                assert {f"/{name}": one.read_bytes() for name, one in there.items()} == laid, sorted(there)
                listed = installed(packager, root, contents, "hightide").split()
                assert {f"/{name}" for name in there} <= set(listed), listed
                assert all(one.stat().st_mode & 0o7022 == 0 for one in there.values()), "writable by others"
                installed(packager, root, remove, "hightide")
                assert not files_of(root), sorted(files_of(root))


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
