"""Build everything that a release is: for every target an archive and a wheel, Debian's and Red Hat's packages, what is
inside (SBOM), and checksums.

    python3 scripts/release.py FOLDER       (make release; with the tools environment's Python)

The same sources give the same bytes, on any machine with the same compilers: nothing has the time, the folder or the
machine in it. SOURCE_DATE_EPOCH is the time that files have, by default the last commit's.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = Path(sys.executable).parent
VERSION = (ROOT / "VERSION").read_text().strip()
TARGETS = ("linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64")
SHELLS = {"bash": "hightide", "zsh": "_hightide", "fish": "hightide.fish", "powershell": "hightide.ps1"}
SUMMARY = "How much memory a machine-learning job takes, who holds it, and what to change"


def run(*command: object, **more: str) -> str:
    """A command's output; it ends this where it fails."""
    done = subprocess.run(
        [str(word) for word in command], cwd=ROOT, env={**os.environ, **more}, text=True, stdout=subprocess.PIPE
    )
    if done.returncode:
        sys.exit(f"release: {' '.join(map(str, command))} ended with {done.returncode}")
    return done.stdout


def moment() -> int:
    """Seconds since 1970 that all files have."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or run("git", "log", "-1", "--format=%ct"))


def flags() -> list[str]:
    """With which Go compiles a release; what else is compiled with them is compiled once."""
    cold = [line for line in (ROOT / "packaging" / "cold-packages").read_text("utf-8").splitlines() if line[:1] != "#"]
    return ["-trimpath", *(f"-gcflags={name}=-l" for name in cold)]


def environment(target: str) -> dict[str, str]:
    """What tells Go which target a program is for, and to collect its own garbage rarely."""
    system, processor = target.split("/")
    return {"GOOS": system, "GOARCH": processor, "CGO_ENABLED": "0", "GOFLAGS": "", "GOGC": "400"}


def build(target: str, folder: Path) -> Path:
    """The program of a target."""
    system, processor = target.split("/")
    program = folder / f"{system}-{processor}" / ("hightide.exe" if system == "windows" else "hightide")
    linked = f"-s -w -X hightide/internal/engine.Version={VERSION}"
    run("go", "build", *flags(), "-buildvcs=false", "-ldflags", linked, "-o", program, "./cmd/hightide", **environment(target))  # fmt: skip
    return program


def papers(program: Path, folder: Path) -> dict[str, bytes]:
    """What goes with the program, by its path in an archive: manual pages, completions, the licence."""
    run(program, "man", folder / "man")
    files = {f"man/man1/{page.name}": page.read_bytes() for page in sorted((folder / "man").iterdir())}
    for shell, name in SHELLS.items():
        files[f"completions/{name}"] = run(program, "completion", shell).encode()
    for name in ("LICENSE", "README.md"):
        files[name] = (ROOT / name).read_bytes()
    return files


def packed(data: bytes) -> bytes:
    """By gzip, without a name or a time."""
    return gzip.compress(data, 9, mtime=0)


def archive(files: dict[str, bytes], to: Path, when: int) -> None:
    """A .tar.gz, or for Windows a .zip, of one folder. The program may be run."""
    top = to.name.removesuffix(".tar.gz").removesuffix(".zip")
    rights = {name: 0o755 if name.startswith("hightide") else 0o644 for name in files}
    if to.suffix == ".zip":
        with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as made:
            for name in sorted(files):
                entry = zipfile.ZipInfo(f"{top}/{name}", time.gmtime(when)[:6])
                entry.external_attr, entry.compress_type = (0o100000 | rights[name]) << 16, zipfile.ZIP_DEFLATED
                made.writestr(entry, files[name])
        return
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(files):
            info = tarfile.TarInfo(f"{top}/{name}")
            info.size, info.mode, info.mtime = len(files[name]), rights[name], when
            tar.addfile(info, io.BytesIO(files[name]))
    to.write_bytes(packed(raw.getvalue()))


def wheel(target: str, program: Path, to: Path) -> None:
    run(
        "sh", "-c", f'cd packaging && "{TOOLS}/hatchling" build -t wheel -d "$0" >/dev/null', to,
        HIGHTIDE_TARGET=target, HIGHTIDE_PROGRAM=str(program),
    )  # fmt: skip


# Where Debian's and Red Hat's systems look for a file of the archive.
EVERYWHERE = {
    "hightide": "/usr/bin/hightide", "completions/hightide": "/usr/share/bash-completion/completions/hightide",
    "completions/hightide.fish": "/usr/share/fish/vendor_completions.d/hightide.fish",
}  # fmt: skip
PLACES = {
    "deb": EVERYWHERE | {"completions/_hightide": "/usr/share/zsh/vendor-completions/_hightide", "LICENSE": "/usr/share/doc/hightide/copyright"},
    "rpm": EVERYWHERE | {"completions/_hightide": "/usr/share/zsh/site-functions/_hightide", "LICENSE": "/usr/share/licenses/hightide/LICENSE"},
}  # fmt: skip


def place(packager: str, name: str) -> str | None:
    """Where a package puts a file of the archive; none: it has no such file."""
    return f"/usr/share/{name}.gz" if name.startswith("man/") else PLACES[packager].get(name)


def package(target: str, files: dict[str, bytes], folder: Path, to: Path, when: int) -> None:
    """Debian's and Red Hat's package of a target of Linux."""
    contents: list[dict[str, object]] = []
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))
    for number, (name, data) in enumerate(sorted(files.items())):
        source = folder / str(number)
        source.write_bytes(packed(data) if name.startswith("man/") else data)
        mode = 0o755 if name == "hightide" else 0o644
        for packager in PLACES:
            if path := place(packager, name):
                info = {"mode": mode, "mtime": at}
                contents.append({"src": str(source), "dst": path, "packager": packager, "file_info": info})
    said = {
        "name": "hightide", "arch": target.split("/")[1], "version": VERSION, "release": "1", "section": "devel", "priority": "optional",
        "maintainer": "The hightide project", "description": SUMMARY, "license": "Apache-2.0", "mtime": at, "contents": contents,
        "rpm": {"buildhost": "hightide", "summary": SUMMARY},
    }  # fmt: skip
    (folder / "nfpm.yaml").write_text(json.dumps(said))  # JSON is YAML
    for packager in PLACES:
        run(TOOLS.parent / "go" / "nfpm", "package", "-f", folder / "nfpm.yaml", "-p", packager, "-t", to)


def bill(program: Path, when: int) -> bytes:
    """What of others is in the program, as CycloneDX: modules of Go as the linker says them, packages of the web pages."""
    parts = []
    listed = re.findall(r"^\tdep\t(\S+)\t(\S+)\t?(\S*)$", run("go", "version", "-m", program), re.MULTILINE)
    for name, version, _ in listed:
        parts.append({"type": "library", "name": name, "version": version, "purl": f"pkg:golang/{name}@{version}"})
    lock = json.loads((ROOT / "web" / "package-lock.json").read_text())
    for path, one in sorted(lock["packages"].items()):
        if path and not one.get("dev"):
            name = path.rpartition("node_modules/")[2]
            purl = f"pkg:npm/{name.replace('@', '%40')}@{one['version']}"
            parts.append({"type": "library", "name": name, "version": one["version"], "purl": purl})
    of = {
        "type": "application",
        "name": "hightide",
        "version": VERSION,
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))
    document = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"timestamp": at, "component": of}, "components": parts,
    }  # fmt: skip
    return (json.dumps(document, indent=1) + "\n").encode()


def main() -> None:
    to = Path(sys.argv[1]).resolve()
    to.mkdir(parents=True, exist_ok=True)
    if any(to.iterdir()):
        sys.exit(f"release: {to} has files already")
    when = moment()
    os.environ["SOURCE_DATE_EPOCH"] = str(when)  # the wheel's builder and nfpm read it
    os.environ["LC_ALL"] = "C.UTF-8"
    with tempfile.TemporaryDirectory(prefix="hightide-release-") as name:
        folder = Path(name)
        programs = {target: build(target, folder) for target in TARGETS}
        own = run("go", "env", "GOHOSTOS", "GOHOSTARCH").split()
        with_it = papers(programs["/".join(own)], folder)
        for target, program in programs.items():
            files = {program.name: program.read_bytes(), **with_it}
            system, processor = target.split("/")
            ending = "zip" if system == "windows" else "tar.gz"
            archive(files, to / f"hightide-{VERSION}-{system}-{processor}.{ending}", when)
            wheel(target, program, to)
            if system == "linux":
                parts = folder / f"package-{processor}"
                parts.mkdir()
                package(target, files, parts, to, when)
        (to / f"hightide-{VERSION}.cdx.json").write_bytes(bill(programs["linux/amd64"], when))
    made = sorted(to.iterdir())
    sums = "".join(f"{sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in made)
    (to / "SHA256SUMS").write_text(sums)
    for file in made:
        print(f"{file.stat().st_size / 1e6:6.1f} MB  {file.name}")


if __name__ == "__main__":
    main()
