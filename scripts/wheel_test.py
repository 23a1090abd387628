"""Build the wheel, install it into a clean environment, and use it as a stranger would.

python3 scripts/wheel_test.py      (with the tools environment's Python)
"""

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import inturn
from torchversions import CACHE, NEWEST, ROOT, python

TOOLS = Path(sys.executable).parent
VERSION = (ROOT / "VERSION").read_text().strip()
TORCH = python(NEWEST)
LIBRARY = ROOT / "heap" / "lib" / "libhightide_heap.so"
PACKED = ROOT / "heap" / "packed" / "amd64" / "libhightide_heap.so.gz"  # what the program carries of it


def output(*command: object, **options: object) -> str:
    """Run a command and return its stdout; a failure shows both streams."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if done.returncode:
        raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return str(done.stdout)


def build(folder: Path) -> Path:
    output(TOOLS / "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT / "packaging")
    (wheel,) = folder.glob("*.whl")
    return wheel


def name_and_version(wheel: Path, _: Path) -> None:
    assert wheel.name == f"hightide-{VERSION}-py3-none-manylinux_2_17_x86_64.whl", wheel.name


def one_platform(wheel: Path, _: Path) -> None:
    """auditwheel finds nothing in it that manylinux_2_17 lacks, the embedded C library included.

    The library stands inside the program, where auditwheel cannot see it; so it is asked about a
    copy of the wheel with the library laid beside the program.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / wheel.name
        copy.write_bytes(wheel.read_bytes())
        with zipfile.ZipFile(copy, "a") as archive:
            archive.write(LIBRARY, f"hightide/{LIBRARY.name}")
        for file in (wheel, copy):
            says = output(TOOLS / "auditwheel", "show", file)
            tag = says.split('platform tag: "manylinux_2_', 1)[1].split("_", 1)[0]
            assert int(tag) <= 17, says


def library_inside(wheel: Path, _: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        program = archive.read(f"hightide-{VERSION}.data/scripts/hightide")
    assert PACKED.read_bytes() in program, "the program carries another heap library, or none"
    assert b"sitecustomize.py" in program, "the program carries no agent"


def binary_found(_: Path, python: Path) -> None:
    found = output(python, "-c", "import hightide; print(hightide.binary(), hightide.__version__)").split()
    assert found == [str(python.parent / "hightide"), VERSION], found
    assert f"hightide {VERSION} " in output(python.parent / "hightide", "version")


def records_a_program(_: Path, python: Path) -> None:
    """`hightide run` in the clean environment, with its Python, an exit code, and allocations named."""
    folder = python.parent.parent
    script = folder / "hold.py"
    script.write_text("import time, sys\nheld = bytearray(64 << 20)\ntime.sleep(1)\nsys.exit(7)\n")
    env = {**os.environ, "HOME": str(folder), "PATH": f"{python.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["hightide", "run", "--data-dir", str(folder / "data"), "--json", "--", "python", str(script)],
        capture_output=True, text=True, env=env, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 7, f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
    summary = json.loads(done.stdout)
    assert summary["exit_code"] == 7, summary
    assert summary["peak"]["host_rss_bytes"] > 64 << 20, summary
    shown = output("hightide", "show", "last", "--data-dir", folder / "data", env=env, cwd=folder)
    assert "hold.py:2" in shown, f"the line that allocates is not named:\n{shown}"


def finds_a_leak(_: Path, python: Path) -> None:
    """A training without any framework, recorded without a change: what grows is named, by `python -m hightide`."""
    folder = python.parent.parent
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HIGHTIDE", "PYTHON"))}
    env |= {"HOME": str(folder), "HIGHTIDE_DATA": str(folder / "leak"), "PATH": f"{python.parent}:{os.environ['PATH']}"}
    command = ["python", "-m", "hightide"]
    output(*command, "run", "--", "python", ROOT / "examples" / "line_leak.py", env=env, cwd=folder)
    said = output(*command, "show", "last", env=env, cwd=folder)
    assert "The list `history` (line_leak.py:15" in said, said


def records_itself(wheel: Path, python: Path) -> None:
    """A program that nobody started under hightide has itself recorded, and reads its own report."""
    folder = python.parent.parent
    script = folder / "itself.py"
    script.write_text(
        "import hightide, time\n"
        "run = hightide.init(name='itself')\n"
        "with hightide.span('load'):\n"
        "    held = b'x' * (64 << 20)\n"
        "    time.sleep(0.3)\n"
        "hightide.stop()\n"
        "report = hightide.report()\n"
        "print(report.id == run, [row['span'] for row in report.spans], report.rows('span-lines')[0]['line'])\n"
    )
    env = {k: v for k, v in os.environ.items() if not k.startswith("HIGHTIDE")}
    said = output(python, script, env={**env, "HOME": str(folder), "HIGHTIDE_DATA": str(folder / "own")}, cwd=folder)
    assert said == "True ['load'] itself.py:4\n", said
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert "hightide/py.typed" in names and not [name for name in names if name.startswith("hightide_agent")]
        points = archive.read(f"hightide-{VERSION}.dist-info/entry_points.txt").decode()
    assert "hightide = hightide.pytest_plugin" in points, points


MARKED = """
import pytest, torch

@pytest.fixture
def model():
    return torch.nn.Linear(1000, 1000).cuda()

@pytest.mark.hightide(gpu="a10", allocated="64MiB")
def test_fits(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(20):
        model(torch.ones(2, 1000, device="cuda")).sum().backward()
        optimizer.step()

@pytest.mark.hightide(gpu="a10", memory="1GiB")
def test_does_not():
    torch.empty(2 << 30, dtype=torch.uint8, device="cuda")

@pytest.mark.hightide(peak="1GiB", leak="10MiB/step")
def test_of_the_host():
    torch.ones(1 << 20)
"""


def marked_tests(_: Path, python: Path) -> None:
    """The marks of the pytest plugin, as pytest finds it by itself; warnings are errors, as many projects have it."""
    folder = python.parent.parent
    (folder / "test_marked.py").write_text(MARKED)
    purelib = "import sysconfig; print(sysconfig.get_path('purelib'))"
    (Path(output(python, "-c", purelib).strip()) / "torch.pth").write_text(output(TORCH, "-c", purelib))
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HIGHTIDE", "PYTHON"))}
    env |= {"HOME": str(folder), "HIGHTIDE_DATA": str(folder / "marked"), "HIGHTIDE_CACHE": str(CACHE)}
    command = [python, "-m", "pytest", "-W", "error", "-p", "no:cacheprovider", "-rA", "test_marked.py"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=env, cwd=folder)
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "does not fit on NVIDIA A10 (imagined)" in done.stdout, done.stdout
    assert "could not get 2.00 GiB at test_marked.py:17" in done.stdout, done.stdout


TESTS: list[Callable[[Path, Path], None]] = [
    name_and_version,
    one_platform,
    library_inside,
    binary_found,
    records_a_program,
    finds_a_leak,
    records_itself,
    marked_tests,
]


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder) / "dist")
        python = Path(folder) / "clean" / "bin" / "python"
        output(sys.executable, "-m", "venv", python.parent.parent)
        output(python, "-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", wheel)
        return inturn.run((test.__name__, partial(test, wheel, python)) for test in TESTS)


if __name__ == "__main__":
    sys.exit(main())
