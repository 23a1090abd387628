"""Fuzz every target, each for a while. `go test` itself runs only what was found before and the seeds.

    make fuzz                                      every target, two minutes each
    python3 scripts/fuzz.py 600 ./internal/pickle  the targets of one package, ten minutes each

A package is built once for all of them; `go test -fuzz` takes one target and links the program anew for each. What
a target finds lies where Go puts it: an input that fails in testdata/fuzz of the package, to be committed with the
repair. What is interesting in Go's cache, where the next run begins.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def targets(package: Path) -> list[str]:
    """The names of a package's fuzz targets, file by file."""
    files = sorted(package.glob("*_test.go"))
    return [name for file in files for name in re.findall(r"^func (Fuzz\w+)\(", file.read_text("utf-8"), re.MULTILINE)]


def answer(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}")
    return done.stdout.strip()


def only_time_ran_out(output: str) -> bool:
    """Whether all that failed is the end of the time to fuzz, which Go sometimes takes for a failure: a target that
    fails or hangs says which input did it."""
    return "context deadline exceeded" in output and "ailing input" not in output


def fuzz(program: Path, name: str, seconds: str, package: Path, kept: Path) -> bool:
    # Go would make each input that reaches new code smaller for up to a minute, and try little else meanwhile.
    flags = [f"-test.fuzz=^{name}$", "-test.run=^$", f"-test.fuzztime={seconds}s", "-test.fuzzminimizetime=100x"]
    flags += [f"-test.fuzzcachedir={kept}"]
    done = subprocess.run([program, *flags], cwd=package, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(f"{name}\n{done.stdout}", flush=True)
    return done.returncode == 0 or only_time_ran_out(done.stdout)


def fuzz_all(package: str, seconds: str) -> list[bool]:
    """Whether each target of the package passed."""
    folder = ROOT / package
    program = ROOT / "build" / "fuzz" / f"{folder.name}.test"
    program.parent.mkdir(parents=True, exist_ok=True)
    answer("go", "test", "-c", "-fuzz=.", "-o", str(program), package)
    kept = Path(answer("go", "env", "GOCACHE"), "fuzz", answer("go", "list", package))
    return [fuzz(program, name, seconds, folder, kept) for name in targets(folder)]


def packages() -> list[str]:
    """Those with fuzz targets."""
    folders = sorted({file.parent for top in ("internal", "cmd") for file in (ROOT / top).rglob("*_test.go")})
    return [f"./{folder.relative_to(ROOT)}" for folder in folders if targets(folder)]


def main() -> int:
    seconds, chosen = (sys.argv[1:] or ["120"])[0], sys.argv[2:] or packages()
    passed = [result for package in chosen for result in fuzz_all(package, seconds)]
    print(f"{passed.count(True)} passed, {passed.count(False)} failed")
    return 0 if passed and all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
