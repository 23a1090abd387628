"""Run every check of the project, and end with what passed and what failed.

    make test                                   everything, after setting up and building
    python3 scripts/check.py --only go agent    some of it; --list names the checks

Checks run four at a time, so that two cores are busy while some of them wait; --lanes 1 runs one after the other. None
may measure time, or write what another one reads. --busy 2 has two processes compute beside them all the while: the tests
pass on a machine with other work. A check's output goes to build/checks/NAME.log; of one that fails, the end is shown.
Up to three tests of a check that failed are run once more, by themselves. One that passes then is named as unsteady. It
hangs on the machine's moment, which is a fault of it or of the product, but of another kind. --strict runs nothing again.
A check that has not ended after LIMIT is ended and failed; pytest shows where a test stands after HANGS seconds.
Needs what scripts/setup puts in place, and bin/hightide.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from torchversions import CACHE, NEWEST, ROOT, python

TOOLS = CACHE / "tools" / "bin"
TORCH = python(NEWEST)
LOGS = ROOT / "build" / "checks"
TOLD = {"PYTHONFAULTHANDLER": "1"}  # an interpreter that crashes says where

# Go packages that start goroutines or share memory between them are tested with the race detector, which makes
# computing 2 to 10 times slower. Of these packages only the tests named are: all else there runs beside nothing, or
# runs a program that others of the tests named run as well. A slash names subtests.
RACED = {
    "./cmd/hightide": [
        "TestSignalsReachTheCommand", "TestInterruptedReport", "TestTwoEnginesAtOnce", "TestKilledEngineLeavesTheTrainingAlone",
        "TestTuningIsTakenBack", "TestLateTimerChangesNothing", "TestTerminal",
        "TestScripts/run-exit", "TestScripts/run-faults", "TestScripts/run-json",
    ],
    "./internal/allocator": ["TestSearch", "TestSearchKnowsTheVersion"],
    "./internal/explore": ["TestMoment", "TestFlames"],
    "./internal/format": ["TestSnapshotFormats", "TestWrappings", "TestHostile", "TestPeakWays", "TestMeasures"],
    "./internal/format/torch": ["TestTorchReal", "FuzzTorch"],
    "./internal/matrix": ["TestJobsWithinMemory", "TestInterrupted", "TestLostTrialsAreMadeAgain", "TestRowsAreTold"],
}  # fmt: skip
# Compilers and linters collect their garbage more rarely, a fifth less computing; not so the tests, which measure memory.
COMPILING = {"GOGC": "400"}
# As `make build` builds, so that nothing is compiled twice. Without paths in it, what is compiled serves every clone.
AS_BUILT = {**COMPILING, "CGO_ENABLED": "0"}
GO_TEST = ["go", "test", "-trimpath", "-json", "-vet=off", "-exec", "env -u GOGC -u CGO_ENABLED"]
# Tests that wait for programs most of the time are two checks, each half as long.
IMAGINE = sorted(str(file.relative_to(ROOT)) for file in (ROOT / "agent/python/tests").glob("test_imagine*.py"))
AGENT = ["agent/python/tests", *(f"--ignore={file}" for file in IMAGINE)]
FRAMEWORKS = ["scripts/tests/test_callbacks.py", "scripts/tests/test_frameworks.py"]
SERVING = ["scripts/tests/test_serving.py"]
XLA = [f"scripts/tests/test_{name}.py" for name in ("xla", "xla_shortages", "equinox", "halved", "tune_jax")]
TENSORFLOW = ["scripts/tests/test_tensorflow.py"]
CUPY = ["scripts/tests/test_cupy.py"]
EXAMPLES = ["scripts/tests", *(f"--ignore={file}" for file in [*FRAMEWORKS, *SERVING, *XLA, *TENSORFLOW, *CUPY])]
CONCURRENT = re.compile(
    r"^\s*go (func\b|[\w.]+\()|\.Go\(|\bsync\.(Mutex|RWMutex|WaitGroup|Cond|Map)\b|\batomic\.", re.MULTILINE
)


@dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    unsteady: int = 0  # of those passed: failed at first

    def __str__(self) -> str:
        text = f"{self.passed} passed, {self.failed} failed"
        text += f", {self.skipped} skipped" if self.skipped else ""
        return text + f", {self.unsteady} passed only when run again" if self.unsteady else text

    def add(self, other: Count) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.unsteady += other.unsteady


@dataclass
class Check:
    """A command, and how its tests are counted from what it printed (else it counts as one)."""

    name: str
    command: Sequence[object]  # words, each turned into text
    lint: bool = False
    count: Callable[[str], Count] | None = None
    again: Callable[[Sequence[object], str], list[Sequence[object]]] | None = None
    """From the command and what it printed, the commands that run once more the tests that failed; none: too many did."""
    env: dict[str, str] = field(default_factory=dict)


MOST_AGAIN = 3  # tests of a check; more are not chance
LIMIT = 3000  # seconds that a check may take: beside others on two cores the longest took 2245
SHOWN = 40  # lines of a check that failed, at the end
HANGS = 900  # seconds after which a test hangs


def again_go(command: Sequence[object], output: str) -> list[Sequence[object]]:
    """The failed tests of `go test -json`, a command each. Of a test with parts, those that failed: all of them may take
    longer than a test has.
    """
    failed: dict[tuple[str, str], list[set[str]]] = {}  # by package and test: by level, the names that failed
    for line in output.splitlines():
        event = json.loads(line) if line.startswith('{"') else {}
        if event.get("Action") == "fail" and "Test" in event:
            test, *parts = event["Test"].split("/")
            levels = failed.setdefault((event["Package"], test), [])
            levels += [set() for _ in range(len(parts) - len(levels))]
            for level, part in zip(levels, parts, strict=False):
                level.add(re.escape(part))
    if not 0 < len(failed) <= MOST_AGAIN:
        return []
    words = [*GO_TEST, "-timeout", "30m", "-count=1", *(["-race"] if "-race" in command else [])]
    return [
        [*words, "-run", "/".join([f"^{test}$", *(f"^({'|'.join(sorted(level))})$" for level in levels)]), package]
        for (package, test), levels in failed.items()
    ]


def again_pytest(command: Sequence[object], output: str) -> list[Sequence[object]]:
    """The tests in pytest's closing list of failures. A name ends where its reason begins."""
    names = re.findall(r"^(?:FAILED|ERROR) (\S+?::.+?)(?: - .*)?$", output, re.MULTILINE)
    options = [word for word in command[1:] if not (ROOT / str(word)).exists()]  # all but the files and folders
    return [[command[0], *options, *names]] if 0 < len(names) <= MOST_AGAIN else []


def again_browser(command: Sequence[object], output: str) -> list[Sequence[object]]:
    """The tests that web/test/all.mjs names at its end, together."""
    names = [name for line in re.findall(r"^failed: (.+)$", output, re.MULTILINE) for name in line.split(", ")]
    return [[*command, "--", *names]] if 0 < len(names) <= MOST_AGAIN else []


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
    return [*(f for f in folders if (ROOT / f).exists()), "scripts/new-pytorch"]


def go_sources(folder: Path, tests: bool) -> list[str]:
    """The texts of a package's files, comments left out: its tests', or all others'."""
    files = [file for file in sorted(folder.glob("*.go")) if file.name.endswith("_test.go") == tests]
    return [re.sub(r"//.*", "", file.read_text("utf-8")) for file in files]


def go_packages() -> dict[str, bool]:
    """The Go packages with tests, as `go test` names them, and whether each is tested with the race detector.

    What stands in raw strings are programs that others run."""
    tests = itertools.chain(
        *((ROOT / top).rglob("*_test.go") for top in ("cmd", "internal", "bench", "web", "agent", "heap", "device"))
    )
    folders = sorted({file.parent for file in tests if "node_modules" not in file.parts})
    return {
        f"./{folder.relative_to(ROOT)}": any(
            CONCURRENT.search(re.sub(r"`[^`]*`", "", text)) for text in go_sources(folder, tests=False)
        )
        for folder in folders
    }


def go_checks() -> list[Check]:
    """Each Go test once: with the race detector or without. The check vet has read the tests already."""
    test = [*GO_TEST, "-timeout", "45m"]
    packages = go_packages()
    some = "|".join("/".join(f"^{part}$" for part in name.split("/")) for names in RACED.values() for name in names)
    whole = [p for p in packages if packages[p] and p not in RACED]
    return [
        Check("go-race", [*test, "-race", *whole], count=count_go, env=COMPILING, again=again_go),
        Check(
            "go-race-some",
            [*test, "-race", "-run", some, *RACED],
            count=count_go,
            env={**COMPILING, "QUICK_END": ""},  # some programs are to run as Python starts them
            again=again_go,
        ),
        Check(
            "go",
            [*test, "-skip", some, *(p for p in packages if p not in whole)],
            count=count_go,
            env=AS_BUILT,
            again=again_go,
        ),
    ]


def web(script: str) -> list[str]:
    return ["npm", "--prefix", "web", "run", "--silent", script]


def checks() -> list[Check]:
    """All checks: what takes a moment, then the longest first, so that none of those is left alone at the end. A new one
    is a line here."""
    ruff = [TOOLS / "ruff"]
    pytest = [TORCH, "-m", "pytest", "-p", "no:cacheprovider", "--durations=0", "-o", f"faulthandler_timeout={HANGS}"]
    make = ["make", "--no-print-directory", "-C"]
    shell = [
        ".ci/run",
        *(f"scripts/{p.name}" for p in (ROOT / "scripts").iterdir() if p.is_file() and b"bash" in p.read_bytes()[:30]),
    ]
    go = {check.name: check for check in go_checks()}
    return [
        Check(
            "gofmt",
            [
                "bash",
                "-c",
                'o=$(gofmt -l cmd internal agent heap device/*.go web/*.go packaging); echo "$o"; test -z "$o"',
            ],
            lint=True,
        ),
        Check("shell", ["bash", "-c", f"for f in {' '.join(shell)}; do bash -n $f || exit 1; done"], lint=True),
        Check("links", [sys.executable, "scripts/links.py"], lint=True),
        Check("prose", [sys.executable, "scripts/prose.py"], lint=True),
        Check("features", [sys.executable, "scripts/features.py", "--check"], lint=True),
        Check("prettier", web("lint"), lint=True),
        Check("webtypes", [sys.executable, "scripts/webtypes.py", "--check"], lint=True),
        Check("limits", [sys.executable, "scripts/limits.py"], lint=True),
        Check("ruff", [*ruff, "check", "--output-format", "concise", *python_folders()], lint=True),
        Check("ruff-format", [*ruff, "format", "--check", "--output-format", "concise", *python_folders()], lint=True),
        go["go"],
        Check("agent", [*pytest, *AGENT], count=count_words, again=again_pytest),
        Check("web-e2e", web("e2e"), count=count_words, again=again_browser),
        Check("examples", [*pytest, *EXAMPLES], env=TOLD, count=count_words, again=again_pytest),
        Check("frameworks", [*pytest, *FRAMEWORKS], count=count_words, again=again_pytest),
        Check("xla", [*pytest, *XLA], count=count_words, again=again_pytest),
        Check("tensorflow", [*pytest, *TENSORFLOW], count=count_words, again=again_pytest),
        Check("cupy", [*pytest, *CUPY], count=count_words, again=again_pytest),
        Check("imagine", [*pytest, *IMAGINE], count=count_words, again=again_pytest),
        Check("serving", [*pytest, *SERVING], count=count_words, again=again_pytest),
        go["go-race"],
        Check("device", [*make, "device", "test"], count=count_unittest),
        Check("heap", [*make, "heap", "test"], count=count_unittest),
        Check(
            "staticcheck",
            [CACHE / "tools" / "go" / "staticcheck", "./..."],
            lint=True,
            env={**AS_BUILT, "GOFLAGS": f"{os.environ.get('GOFLAGS', '')} -trimpath"},
        ),
        Check("vet", ["go", "vet", "-trimpath", "./..."], lint=True, env=AS_BUILT),
        Check("mypy", [sys.executable, "scripts/typecheck.py"], lint=True),
        go["go-race-some"],
        Check("platforms", [sys.executable, "scripts/platforms.py"], count=count_words),
        Check("site", [CACHE / "site" / "bin" / "python", "scripts/site_test.py"], count=count_words),
        Check("pages", [sys.executable, "scripts/pages_test.py"], count=count_words),
        Check("release", [sys.executable, "scripts/release_test.py"], count=count_words),
        Check("vulnerabilities", [sys.executable, "scripts/vulnerabilities.py"], count=count_words),
        Check("deploy", [sys.executable, "scripts/deploy_test.py"], count=count_words),
        Check("wheel", [sys.executable, "scripts/wheel_test.py"], count=count_words),
        Check("openapi", [sys.executable, "scripts/openapi.py", "--check"], lint=True),
        Check("api", [sys.executable, "bench/api.py", "--quick"]),
        Check("web", web("check"), count=count_words),
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


def counted(check: Check, output: str, code: int) -> Count:
    """The tests of a check. One that ran nothing has not passed."""
    count = check.count(output) if check.count else Count(passed=1)
    if code and not count.failed:
        return Count(count.passed - (check.count is None), 1, count.skipped)
    if not code and count.passed == 0:
        count.failed = 1
    return count


def end(command: subprocess.Popen[bytes], how: signal.Signals) -> None:
    """End a command, and what it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(command.pid, how)


class Runner:
    """Runs checks, keeps their logs, says how they went."""

    def __init__(self, lanes: int, strict: bool) -> None:
        self.lanes = lanes
        self.strict = strict
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.cpu: dict[str, float] = collections.defaultdict(float)  # seconds, by check
        self.failures: dict[str, str] = {}  # what to show of each check that failed

    def run_all(self, chosen: Sequence[Check]) -> Iterator[tuple[Check, Count]]:
        """In the order given, as many at a time as there are lanes. What ends this ends the commands that run."""
        with ThreadPoolExecutor(self.lanes) as lanes:
            results = [(check, lanes.submit(self.run, check)) for check in chosen]
            try:
                for check, result in results:
                    yield check, result.result()
            except BaseException:
                print(f"ended while these ran: {', '.join(self.running)}", flush=True)
                lanes.shutdown(wait=False, cancel_futures=True)
                for command in list(self.running.values()):
                    end(command, signal.SIGTERM)
                raise

    def run(self, check: Check) -> Count:
        begin = time.monotonic()
        output, code = self.output(check, check.command)
        count = counted(check, output, code)
        log = readable(output) + ("\nno test was run\n" if count.failed and not code else "")
        if count.failed and check.again and not self.strict:
            log += self.run_again(check, output, count)
        (LOGS / f"{check.name}.log").write_text(log)
        seconds, cpu = time.monotonic() - begin, self.cpu[check.name]
        tests = f"{count}, " if check.count else ""
        line = f"{'FAIL' if count.failed else 'ok':4}  {check.name:24} {tests}{seconds:.1f} s, {cpu:.1f} s of CPU\n"
        if count.failed or count.unsteady:
            shown = failures_only(log)
            line += f"{shown}\n      all of it: build/checks/{check.name}.log\n"
            if count.failed:
                self.failures[check.name] = shown
        print(line, end="", flush=True)
        self.show_running()
        return count

    def run_again(self, check: Check, output: str, count: Count) -> str:
        """Run the tests that failed once more; what passes now is unsteady. Returns what was printed."""
        assert check.count and check.again
        log = ""
        for command in check.again(check.command, output):
            text, code = self.output(check, command)
            second = counted(check, text, code)
            log += f"\n==== once more: {' '.join(str(word) for word in command)}\n" + readable(text)
            if not second.failed or (check.again is again_browser and not code):  # of those some count nothing
                steadied = min(max(second.passed, 1), count.failed)
                count.add(Count(passed=steadied, failed=-steadied, unsteady=steadied))
        return log

    def output(self, check: Check, words: Sequence[object]) -> tuple[str, int]:
        """Run a command of a check; what it printed, and its exit code."""
        # No bytecode: Python files are embedded in the binary, and a cache beside them would be too.
        # One thread: PyTorch's wait for each other computing, which takes the cores from the other checks.
        # No collection of garbage at the end: a tenth of what an import of PyTorch and its start take (scripts/setup).
        own = {
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
            "QUICK_END": "1",
            "HIGHTIDE_TEST_PYTHON": str(TORCH),
        }
        with tempfile.TemporaryFile() as printed:  # a pipe would be waited for as long as anybody has it open
            command = subprocess.Popen(
                [str(word) for word in words], cwd=ROOT, env={**os.environ, **own, **check.env},
                stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            self.running[check.name] = command
            self.show_running()
            limit = threading.Timer(LIMIT, end, (command, signal.SIGKILL))
            limit.start()
            _, status, used = os.wait4(command.pid, 0)
            over = not limit.is_alive()
            limit.cancel()
            command.returncode = os.waitstatus_to_exitcode(status)
            del self.running[check.name]
            self.cpu[check.name] += used.ru_utime + used.ru_stime
            printed.seek(0)
            output = printed.read().decode(errors="replace")
        return output + (f"\nended after {LIMIT} s: it hangs\n" if over else ""), command.returncode

    def show_running(self) -> None:
        if sys.stdout.isatty() and self.running:
            print(f"  …   {', '.join(self.running)}", end="\r", flush=True)


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Other work on the machine: processes of ordinary priority that compute until the end of this, or of this process."""
    compute = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(100000))"
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.callback(stack.enter_context(subprocess.Popen([sys.executable, "-c", compute])).kill)
        yield


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these; 'lint' names the linters")
    parser.add_argument("--lanes", type=int, default=4, metavar="N", help="how many checks at most run at a time")
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="processes that compute beside the checks")
    parser.add_argument("--strict", action="store_true", help="run no test again that failed")
    parser.add_argument("--list", action="store_true", help="name the checks and stop")
    options = parser.parse_args()
    chosen = [
        check
        for check in checks()
        if not options.only or check.name in options.only or (check.lint and "lint" in options.only)
    ]
    if options.list:
        print("\n".join(check.name for check in chosen))
        return 0
    if not chosen:
        sys.exit(f"no such check: {' '.join(options.only)}")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(
            signal.SIGINT, signal.default_int_handler
        )  # a shell starts what runs behind it so; tests interrupt
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    LOGS.mkdir(parents=True, exist_ok=True)
    begin, total, broken = time.monotonic(), Count(), []
    runner = Runner(options.lanes, options.strict)
    with busy(options.busy):
        for check, count in runner.run_all(chosen):
            total.add(count)
            if count.failed:
                broken.append(check.name)
    minutes = (time.monotonic() - begin) / 60
    print(f"\n{len(chosen)} checks in {minutes:.1f} minutes, {sum(runner.cpu.values()) / 60:.1f} minutes of CPU")
    for name, shown in runner.failures.items():  # once more, where whoever reads the end of a long log sees it
        print(f"\n{name} failed:\n" + "\n".join(shown.splitlines()[-SHOWN:]))
    if broken:
        print(f"failed: {', '.join(broken)}")
    print(total)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
