"""Run every check of the project, one after the other, and end with what passed and what failed.

    make test                                   everything, after setting up and building
    python3 scripts/check.py --only go pytest   some of it; --list names the checks

A check's output goes to build/checks/NAME.log; of one that fails, the end is shown. Needs what
scripts/setup puts in place, and bin/hightide.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("HIGHTIDE_CACHE", Path.home() / ".cache" / "hightide"))
TOOLS = CACHE / "tools" / "bin"
TORCH = CACHE / "torch-2.15.0" / "bin" / "python"
LOGS = ROOT / "build" / "checks"
FUZZ_SECONDS = os.environ.get("FUZZ_SECONDS", "4")


@dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __str__(self) -> str:
        text = f"{self.passed} passed, {self.failed} failed"
        return text + f", {self.skipped} skipped" if self.skipped else text


@dataclass
class Check:
    """A command, and how its tests are counted from what it printed (else it counts as one)."""

    name: str
    command: Sequence[object]  # words, each turned into text
    lint: bool = False
    count: Callable[[str], Count] | None = None
    env: dict[str, str] = field(default_factory=dict)


def count_go(output: str) -> Count:
    """Count the events of `go test -json`; subtests are not counted beside their parents."""
    kinds = {"pass": "passed", "fail": "failed", "skip": "skipped"}
    count = Count()
    for line in output.splitlines():
        if not line.startswith("{"):
            continue
        event = json.loads(line)
        kind = kinds.get(event.get("Action", ""))
        if kind and "Test" in event and "/" not in event["Test"]:
            setattr(count, kind, getattr(count, kind) + 1)
    return count


def count_words(output: str) -> Count:
    """Add up the `N passed`, `N failed`, `N skipped` of pytest's and vitest's closing lines."""
    count = Count()
    closing = "|".join(
        [
            r"^=* ?\d+ (?:passed|failed|skipped|error).* in [\d.]+s.*$",  # pytest
            r"^\s*Tests\s+\d.*$",  # vitest
            r"^\d+ passed, \d+ failed.*$",  # the scripts here
        ]
    )
    for line in re.findall(closing, re.sub(r"\x1b\[[0-9;]*m", "", output), re.MULTILINE):
        for number, kind in re.findall(r"(\d+) (passed|failed|skipped|errors?)", line):
            kind = "failed" if kind.startswith("error") else kind
            setattr(count, kind, getattr(count, kind) + int(number))
    return count


def count_unittest(output: str) -> Count:
    """Count the tests of Python's unittest and the C programs that ran before it."""
    tests = sum(int(n) for n in re.findall(r"^Ran (\d+) tests?", output, re.MULTILINE))
    skipped = sum(int(n) for n in re.findall(r"skipped=(\d+)", output))
    programs = len(re.findall(r"^build/\S+$", output, re.MULTILINE))
    return Count(passed=tests + programs - skipped, skipped=skipped)


def python_folders() -> list[str]:
    folders = ("agent", "packaging", "scripts", "examples", "bench", "heap", "device", "testdata")
    return [f for f in folders if (ROOT / f).exists()]


def fuzz_targets() -> list[tuple[str, str]]:
    """Every fuzz target as (package folder, name)."""
    found = []
    for folder in ("internal", "cmd", "heap", "agent"):
        for file in sorted((ROOT / folder).rglob("*_test.go")):
            for name in re.findall(r"^func (Fuzz\w+)\(", file.read_text(encoding="utf-8"), re.MULTILINE):
                found.append(("./" + str(file.parent.relative_to(ROOT)), name))
    return found


def only_time_ran_out(check: Check, output: str) -> bool:
    """Whether all that failed is the end of the time to fuzz, which Go sometimes takes for a failure: a target that
    fails or hangs says which input did it."""
    return check.name.startswith("fuzz-") and "context deadline exceeded" in output and "ailing input" not in output


def fuzz_checks() -> list[Check]:
    return [
        Check(
            f"fuzz-{package.rsplit('/', 1)[-1]}-{name.removeprefix('Fuzz').lower()}",
            ["go", "test", "-run", "^$", "-fuzz", f"^{name}$", "-fuzztime", f"{FUZZ_SECONDS}s", package],
        )
        for package, name in fuzz_targets()
    ]


def web(script: str) -> list[str]:
    return ["npm", "--prefix", "web", "run", "--silent", script]


def checks() -> list[Check]:
    """All checks, cheap ones first. A new one is a line here."""
    ruff = [TOOLS / "ruff"]
    pytest = [TORCH, "-m", "pytest", "-p", "no:cacheprovider"]
    shell = [".ci/run", *(f"scripts/{p.name}" for p in (ROOT / "scripts").iterdir() if p.is_file() and not p.suffix)]
    return [
        Check(
            "gofmt",
            ["bash", "-c", 'o=$(gofmt -l cmd internal agent heap device/*.go web/*.go); echo "$o"; test -z "$o"'],
            lint=True,
        ),
        Check("shell", ["bash", "-c", f"for f in {' '.join(shell)}; do bash -n $f || exit 1; done"], lint=True),
        Check("links", [sys.executable, "scripts/links.py"], lint=True),
        Check("ruff", [*ruff, "check", "--output-format", "concise", *python_folders()], lint=True),
        Check("ruff-format", [*ruff, "format", "--check", "--output-format", "concise", *python_folders()], lint=True),
        Check("mypy", [sys.executable, "scripts/typecheck.py"], lint=True),
        Check("vet", ["go", "vet", "./..."], lint=True),
        Check("staticcheck", [CACHE / "tools" / "go" / "staticcheck", "./..."], lint=True),
        Check("heap", ["make", "--no-print-directory", "-C", "heap", "test"], count=count_unittest),
        Check("device", ["make", "--no-print-directory", "-C", "device", "test"], count=count_unittest),
        Check("web", web("check"), count=count_words),
        Check("go", ["go", "test", "-race", "-json", "-timeout", "45m", "./..."], count=count_go),
        Check("agent", [*pytest, "agent/python/tests"], count=count_words),
        Check("web-e2e", web("e2e"), count=count_words),
        Check("examples", [*pytest, "scripts/tests"], count=count_words),
        Check("wheel", [sys.executable, "scripts/wheel_test.py"], count=count_words),
        *fuzz_checks(),
    ]


def readable(output: str) -> str:
    """Turn `go test -json` back into what a person reads, package by package; the rest passes through."""
    lines: list[str] = []
    packages: dict[str, list[str]] = {}
    for line in output.splitlines():
        if not line.startswith('{"'):
            lines.append(line)
            continue
        event = json.loads(line)
        if event.get("Action") in ("output", "build-output"):
            package = event.get("Package") or event.get("ImportPath", "")
            packages.setdefault(package, []).append(event["Output"].rstrip("\n"))
    return "\n".join(lines + [line for package in packages.values() for line in package])


def failures_only(text: str) -> str:
    """What to show of a failed check: the parts of Go's output around failures, else the end."""
    lines = text.splitlines()
    wanted = [i for i, line in enumerate(lines) if re.match(r"\s*(--- FAIL|FAIL|panic:|WARNING: DATA RACE)", line)]
    if not wanted:
        return "\n".join(lines[-60:])
    shown = sorted({j for i in wanted for j in range(max(0, i - 15), min(len(lines), i + 25))})
    return "\n".join(lines[j] for j in shown[:200])


def run(check: Check) -> Count:
    """Run one check, keep its log, say how it went."""
    interactive = sys.stdout.isatty()
    if interactive:
        print(f"  …   {check.name}", end="\r", flush=True)
    # No bytecode: Python files are embedded in the binary, and a cache beside them would be too.
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "HIGHTIDE_TEST_PYTHON": str(TORCH), **check.env}
    begin = time.monotonic()
    done = subprocess.run(
        [str(word) for word in check.command],
        cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    seconds = time.monotonic() - begin
    output = done.stdout.decode(errors="replace")
    count = check.count(output) if check.count else Count(passed=1)
    if done.returncode and not count.failed and not only_time_ran_out(check, output):
        count = Count(count.passed - (check.count is None), 1, count.skipped)
    elif not done.returncode and count.passed == 0:
        count.failed = 1  # a check that ran nothing has not passed
        output += "\nno test was run\n"
    text = readable(output)
    (LOGS / f"{check.name}.log").write_text(text)
    word = "FAIL" if count.failed else "ok"
    tests = f"{count}, " if check.count else ""
    print(f"{word:4}  {check.name:24} {tests}{seconds:.1f} s", flush=True)
    if count.failed:
        print(failures_only(text) + f"\n      all of it: build/checks/{check.name}.log", flush=True)
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these; 'lint' and 'fuzz' name groups")
    parser.add_argument("--list", action="store_true", help="name the checks and stop")
    options = parser.parse_args()
    chosen = [
        check
        for check in checks()
        if not options.only
        or check.name in options.only
        or (check.lint and "lint" in options.only)
        or (check.name.startswith("fuzz-") and "fuzz" in options.only)
    ]
    if options.list:
        print("\n".join(check.name for check in chosen))
        return 0
    if not chosen:
        sys.exit(f"no such check: {' '.join(options.only)}")
    LOGS.mkdir(parents=True, exist_ok=True)
    begin, total, broken = time.monotonic(), Count(), []
    for check in chosen:
        count = run(check)
        total.passed += count.passed
        total.failed += count.failed
        total.skipped += count.skipped
        if count.failed:
            broken.append(check.name)
    minutes = (time.monotonic() - begin) / 60
    print(f"\n{len(chosen)} checks in {minutes:.1f} minutes" + ("; failed: " if broken else "") + ", ".join(broken))
    print(total)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
