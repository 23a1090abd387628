"""Build hightide for the other systems, and use what was built there as far as it runs here.

    python3 scripts/platforms.py                   (scripts/setup platforms gets the emulators)
    python3 scripts/platforms.py --imagine FOLDER  one step on an imaginary GPU, with PyTorch's arm64 wheels in FOLDER;
                                                   3 GB to download and 5 minutes on two cores, so no part of make test

    uv pip install --no-deps --python-version 3.11 --python-platform aarch64-manylinux_2_28 --target FOLDER \\
        -r requirements/torch-2.15.0.txt

linux/arm64 runs under qemu, Windows under Wine, both for real: what they say of a file is held against this machine's
own, byte by byte. On both programs are observed too. macOS is compiled and vetted alone, as nothing here runs it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import inturn
import release
from torchversions import CACHE, NEWEST, ROOT, python

OUT = ROOT / "build" / "platforms"
TARGETS = ("linux/arm64", "darwin/arm64", "darwin/amd64", "windows/amd64")
CROSS = "aarch64-linux-gnu-"
ARM = CACHE / "platforms" / "arm64"  # a Python of Debian's, with its libraries
PREFIX = CACHE / "platforms" / "wine"
WINDOWS_PYTHON = CACHE / "windows-python" / "cp311" / "python.exe"
WINE = "/usr/lib/wine/wine64"
SECONDS = 600  # that one program may take

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
SYSTEMS = (
    "./internal/system", "./internal/files", "./internal/pythons", "./internal/processes/...",
)  # fmt: skip  # tests of others are for Linux
IMAGINE = (["imagine", "--gpu", "a10", "--", "python", "x.py"], ["fit", "--gpu", "a10", "--", "python", "x.py"])


def build() -> None:
    """Every target is built as a release has it, with vet's look at what is of that system alone."""
    subprocess.run(["make", "--no-print-directory", "cross"], cwd=ROOT, check=True)
    for target in TARGETS:
        release.build(target, OUT)
        release.run("go", "vet", *release.flags(), *SYSTEMS, **release.environment(target))


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
    return There("linux-arm64/hightide", ["qemu-aarch64-static"], {}, home)


def windows(home: Path) -> There:
    return There("windows-amd64/hightide.exe", [WINE], {"WINEPREFIX": str(PREFIX), "WINEDEBUG": "-all"}, home)


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
    for words in IMAGINE:
        done = there(*words)
        assert done.returncode == 4 and f"takes Linux on x86-64 or arm64: on {name}" in done.stderr, (words, done)


def windows_says_what_it_cannot(home: Path) -> None:
    there = windows(home)
    says_what_it_cannot(there, "Windows")
    info = there("info").stdout
    assert "the heap sampler does not run on Windows" in info and "tried under Wine" in info, info
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


def taking(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The processes of our program, each once: Wine starts services of its own, and may put the time at which a process
    began off while it begins, so that it is taken for another."""
    newest = {process["pid"]: process for process in sorted(report["processes"], key=lambda p: int(p["id"]))}
    return [process for process in newest.values() if "takes.exe" in str(process.get("command"))]


def windows_records(home: Path) -> None:
    """A program for Windows, and one that it starts: their memory, the ends of both, the exit code."""
    takes = home / "takes.exe"
    env = {**os.environ, "GOOS": "windows", "GOARCH": "amd64", "CGO_ENABLED": "0"}
    subprocess.run(["go", "build", "-o", takes, "testdata/windows/takes.go"], cwd=ROOT, env=env, check=True)
    there = windows(home)
    done = there("run", "--name", "wine", "--", str(takes), "100", "50", "7")
    assert done.returncode == 7 and "took 100 MiB" in done.stdout, done
    assert "the heap sampler is for Linux, and this is Windows" in done.stderr, done.stderr
    shown = there("show", "wine", "--json")
    ours = here(home)("show", "wine", "--json")
    assert ours.stdout == shown.stdout.replace("\r\n", "\n"), ours.stderr
    report = json.loads(shown.stdout)
    first, second = sorted(taking(report), key=lambda process: int(process["id"]))
    assert first["exit_code"] == 7 and second["parent"] == first["id"], report["processes"]
    assert 100 << 20 <= first["maxrss_bytes"] < 200 << 20 and 50 << 20 <= second["maxrss_bytes"] < 150 << 20, report[
        "processes"
    ]
    assert report["headline"]["peak"]["host_rss_bytes"] >= 150 << 20, report["headline"]
    said = [note for note in report["notes"] if "control groups" in note]
    assert len(said) == 1, report["notes"]
    assert not [series["name"] for series in report["series"] if series["name"] in ("host.swap", "cgroup.used")]
    # what the program writes is kept and shown
    done = there("run", "--capture", "--name", "kept", "--", str(takes), "10", "0", "3")
    kept = [file.read_text() for file in (home / "data" / "runs").glob("*/output.log")]
    assert done.returncode == 3 and "took 10 MiB" in done.stdout and kept == ["took 10 MiB\n"], (done, kept)
    # what is to end, ends with all that it started
    held, writes = os.pipe()  # it goes on until this is closed
    for seconds in (1, 4, 16, 64):  # on a busy machine the second program begins later
        words = ["run", "--duration", f"{seconds}s", "--name", f"ended-{seconds}", "--", str(takes), "20", "20", "0"]
        subprocess.run(
            [*there.command, *words], env={**there.env, "TAKES_UNTIL_EOF": "1"}, stdin=held, capture_output=True,
            timeout=SECONDS,
        )  # fmt: skip
        ended = json.loads(there("show", f"ended-{seconds}", "--json").stdout)
        if len(taking(ended)) == 2:
            break
    for end in (held, writes):
        os.close(end)
    assert ended["headline"]["ended"]["kind"] == "stopped" and len(taking(ended)) == 2, ended["headline"]
    assert all("end_mono_ns" in process for process in taking(ended)), ended["processes"]
    for word in ("no-such-program", "Z:\\no\\such.exe"):
        done = there("run", "--", word)
        assert done.returncode == 127 and word in done.stderr, done


def windows_agent(home: Path) -> None:
    """The agent in a Python for Windows: a span, the list that grows in it, the exit code."""
    (home / "grows.py").write_text(GROWS)
    there = windows(home)
    sources = "Z:" + str(ROOT / "agent/python/src").replace("/", "\\")
    there.env |= {"PYTHONPATH": sources, "PYTHONDONTWRITEBYTECODE": "1"}
    words = ["run", "-q", "--name", "agent", "--", str(WINDOWS_PYTHON), str(home / "grows.py")]
    # without standard input as Wine's Python does not begin where that is none of its own
    done = subprocess.run(
        [*there.command, *words], env=there.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS
    )  # fmt: skip
    assert done.returncode == 7, done
    shown = there("show", "agent", "--json")
    assert here(home)("show", "agent", "--json").stdout == shown.stdout.replace("\r\n", "\n")
    report = json.loads(shown.stdout)
    tables = {table["name"]: table["rows"] for table in report["tables"]}
    assert tables["spans"][0][0] == "fill" and max(n for n in tables["spans"][0] if isinstance(n, int)) >= 30 << 20, (
        tables
    )
    (python,) = [process for process in report["processes"] if "python" in process]
    assert python["python"].startswith("3.11") and python["exit_code"] == 7, python
    words = ["run", "-q", "--tracemalloc", "--name", "traced", "--", str(WINDOWS_PYTHON), str(home / "grows.py")]
    done = subprocess.run(
        [*there.command, *words], env=there.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS
    )  # fmt: skip
    assert done.returncode == 7, done
    report = json.loads(there("show", "traced", "--json").stdout)
    most = report["heap_lines"]["lines"][0]
    assert most["file"].endswith("grows.py") and most["label"] == "measured" and most["bytes"] >= 30 << 20, report


def windows_attaches_and_benches(home: Path) -> None:
    """A program for Windows that runs already, and cells whose memory differs by what their command says."""
    takes = home / "takes.exe"
    env = {**os.environ, "GOOS": "windows", "GOARCH": "amd64", "CGO_ENABLED": "0"}
    subprocess.run(["go", "build", "-o", takes, "testdata/windows/takes.go"], cwd=ROOT, env=env, check=True)
    there = windows(home)
    running = subprocess.Popen(
        [WINE, takes, "80", "0", "7"], env={**there.env, "TAKES_UNTIL_EOF": "1"}, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stdin is not None and running.stdout is not None
    said = [running.stdout.readline().strip() for _ in range(2)]
    assert said[0] == "took 80 MiB", said
    done = there("attach", said[1], "--name", "there", "--duration", "2s")
    assert done.returncode == 0, done
    running.stdin.close()
    assert running.wait(timeout=SECONDS) == 7, "it was not left alone"
    (process,) = taking(json.loads(there("show", "there", "--json").stdout))
    assert 80 << 20 <= process["maxrss_bytes"] < 180 << 20, process
    (home / "sizes.yaml").write_text(f"axes: {{mib: [20, 120]}}\ncommand: [{takes}, '{{mib}}', '0', '0']\nrepeats: 1\n")
    done = there("bench", str(home / "sizes.yaml"), "--json")
    assert done.returncode == 0, done
    trials = json.loads(done.stdout)["trials"]
    peaks = {trial["cell"]: trial["figures"]["rss"]["max"] for trial in trials if trial["state"] == "done"}
    assert 90 << 20 < peaks["mib=120"] - peaks["mib=20"] < 110 << 20, peaks


# What is linked with musl, as all of Alpine: 60 MiB held by three threads, and 24 MiB of a forked child.
MUSL = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *hold(void *none) {
    for (int i = 0; i < 200; i++) {
        char *block = malloc(50 << 10);
        memset(block = realloc(block, 100 << 10), 1, 100 << 10);
        usleep(2000);
    }
    return none;
}
int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, hold, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    if (!fork()) {
        memset(malloc(24 << 20), 1, 24 << 20);
        usleep(500000);
        _exit(0);
    }
    wait(NULL);
    puts("held");
    return 0;
}
"""


def musl_records(home: Path) -> None:
    """A program that is linked with musl runs as it did, also where a program of glibc starts it; its heap is sampled."""
    program, plain = home / "held", here(home)
    subprocess.run(["musl-gcc", "-x", "c", "-", "-o", program], input=MUSL, text=True, check=True)
    for name, words in (("musl", [str(program)]), ("shell", ["sh", "-c", f"{program}; exit 7"])):
        done = plain("run", "--name", name, "--", *words)
        assert done.stdout == "held\n" and done.returncode == 7 * (name == "shell"), done
        report = json.loads(plain("show", name, "--json").stdout)
        heaps = sorted(max(series["y"]) for series in report["series"] if series["name"] == "heap.live")[-2:]
        assert 24 << 20 <= heaps[0] < 28 << 20 and 35 << 20 < heaps[1] < 90 << 20, heaps


def gvisor_records(home: Path) -> None:
    """In gVisor a program is recorded with its lines, what its kernel does not count is absent, and info says so."""
    (home / "grows.py").write_text(GROWS)
    hightide = shlex.quote(str(ROOT / "bin" / "hightide"))
    # /tmp in there is its own, and ends with it
    words = f"""
        export HIGHTIDE_DATA=/tmp/data PYTHONPATH={shlex.quote(str(ROOT / "agent/python/src"))} PYTHONDONTWRITEBYTECODE=1
        {hightide} info --json
        {hightide} run -q --name there -- {shlex.quote(str(python(NEWEST)))} grows.py || echo '"exit code '$?'"'
        {hightide} show there --json
    """
    done = subprocess.run(
        ["runsc", "--rootless", "--network=none", "--platform=ptrace", "do", "sh", "-c", words],
        cwd=home, capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip
    said, at = [], 0
    while at < len(done.stdout):
        value, at = json.JSONDecoder().raw_decode(done.stdout, at)
        at += len(done.stdout[at:]) - len(done.stdout[at:].lstrip())
        said.append(value)
    assert len(said) == 3, done
    info, code, report = said
    abilities = {ability["name"]: ability for ability in info["abilities"]}
    assert abilities["gVisor"]["can"] == "partly" and "swap and page faults" in abilities["processes"]["text"], (
        abilities
    )
    assert abilities["PSS and USS"]["text"] == "gVisor has no /proc/PID/smaps_rollup", abilities
    assert info["host"]["kernel"] and "free_bytes" not in info["data"], info
    assert code == "exit code 7", done
    plain = here(home)
    plain.env["PYTHONPATH"] = str(ROOT / "agent/python/src")
    assert plain("run", "-q", "--name", "here", "--", str(python(NEWEST)), str(home / "grows.py")).returncode == 7
    theirs, ours = parts(report), parts(json.loads(plain("show", "here", "--json").stdout))
    assert ours - theirs >= {"tree.pss", "tree.uss", "faults"}, (ours, theirs)
    assert {"host.rss", "heap.live", "sites"} <= theirs and "grows.py:5" in str(report["tables"]), report["tables"]
    assert report["headline"]["peak"]["host_rss_bytes"] > 30 << 20, report["headline"]


def parts(report: dict[str, Any]) -> set[str]:
    """The names of a report's series and tables."""
    return {part["name"] for kind in ("series", "tables") for part in report[kind]}


def arm_is_translated(home: Path) -> None:
    """info says that qemu translates what runs here."""
    info = json.loads(arm(home)("info", "--json").stdout)
    (said,) = [ability["text"] for ability in info["abilities"] if ability["name"] == "translation"]
    assert said.startswith("this hightide is built for arm64, and the processor is amd64"), said


def arm_libraries(_: Path) -> None:
    """The C tests of both libraries."""
    make = ["make", "--no-print-directory", "-s", "-j2", f"CROSS={CROSS}"]
    heap = [f"build/arm64/{name}-plain" for name in ("unit", "stress")]
    device = [f"build/arm64/plain/test_{file.stem}" for file in sorted((ROOT / "device" / "tests").glob("*.c"))]
    for folder, tests in (("heap", heap), ("device", device)):
        subprocess.run([*make, "-C", folder, *tests], cwd=ROOT, check=True, capture_output=True)
        for test in tests:
            subprocess.run(
                ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu", ROOT / folder / test],
                check=True, capture_output=True, timeout=SECONDS,
            )  # fmt: skip


# What it keeps is 5 times 6 MiB, in one line; a span of its own and an exit code.
GROWS = """
import hightide, sys, time
kept = []
def grow():
    kept.append(bytearray(6 << 20))
with hightide.span("fill"):
    for _ in range(5):
        grow()
        time.sleep(0.2)
sys.exit(7)
"""


def as_arm(home: Path, *commands: str) -> str:
    """Run shell commands where the kernel runs arm64 programs by qemu: in a user namespace, which leaves the machine as
    it is. What they print."""
    register = (
        "mount -t binfmt_misc none /proc/sys/fs/binfmt_misc"
        " && tr -d '\\n' </usr/lib/binfmt.d/qemu-aarch64.conf >/proc/sys/fs/binfmt_misc/register"
    )
    env = {
        **os.environ, "QEMU_LD_PREFIX": str(ARM), "HOME": str(home), "HIGHTIDE_DATA": str(home / "data"),
        "PATH": f"{ARM / 'usr' / 'bin'}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8",
        "PYTHONPATH": str(ROOT / "agent/python/src"), "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", "; ".join([register, *commands])],
        cwd=home, env=env, capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def arm_records(home: Path) -> None:
    """A program on Debian's arm64 Python, with the lines that allocate; read back on both processors."""
    (home / "grows.py").write_text(GROWS)
    hightide = shlex.quote(str(OUT / "linux-arm64" / "hightide"))
    code = as_arm(home, f"{hightide} run --name arm -- python3.11 grows.py >said 2>&1 || echo $?")
    assert code == "7\n", code + (home / "said").read_text()
    shown = as_arm(home, f"{hightide} show arm --json")
    ours = here(home)("show", "arm", "--json")
    assert ours.stdout == shown, ours.stderr
    assert re.search(r"grows\.py:5.* 30\.0 MiB", here(home)("show", "arm").stdout), here(home)("show", "arm").stdout
    report = json.loads(shown)
    tables = {table["name"]: table["rows"] for table in report["tables"]}
    assert len(tables["processes"]) == 1 and tables["spans"][0][0] == "fill", tables


def arm_attaches_and_benches(home: Path) -> None:
    """A program that runs already, and cells whose memory differs by what their command says."""
    hightide = shlex.quote(str(OUT / "linux-arm64" / "hightide"))
    (home / "holds.py").write_text(
        "import sys\nheld = bytearray(80 << 20)\nprint('held', flush=True)\nsys.stdin.read()\n"
    )
    (home / "sizes.yaml").write_text(
        "axes: {mib: [20, 120]}\nrepeats: 1\n"
        "command: [python3.11, -c, 'import time; held = bytearray({mib} << 20); time.sleep(1)']\n"
    )
    as_arm(
        home,
        "mkfifo input output",
        "python3.11 holds.py <input >output & there=$!",
        "exec 8>input 9<output",
        "read word <&9",
        f"{hightide} attach $there --duration 2s --name there >said 2>&1 || cat said",
        "exec 8>&-",
        "wait $there",
        f"{hightide} bench sizes.yaml --json >sizes.json",
    )
    report = json.loads(here(home)("show", "there", "--json").stdout)
    assert report["headline"]["peak"]["host_rss_bytes"] >= 80 << 20, report["headline"]
    trials = json.loads((home / "sizes.json").read_text())["trials"]
    peaks = {trial["cell"]: trial["figures"]["rss"]["max"] for trial in trials if trial["state"] == "done"}
    assert 90 << 20 < peaks["mib=120"] - peaks["mib=20"] < 110 << 20, peaks


# A training of one layer, whose device's peak is that of the same PyTorch on x86-64.
TRAINS = """
import torch
model = torch.nn.Linear(1024, 1024, device="cuda")
optimizer = torch.optim.Adam(model.parameters())
for _ in range(4):
    optimizer.zero_grad()
    model(torch.ones(64, 1024, device="cuda")).sum().backward()
    optimizer.step()
"""
CORTEX_A72 = "0x00000000410fd083"  # as MIDR_EL1 has it


def arm_imagines(wheels: Path, home: Path) -> None:
    """The same program is imagined to take as much on both processors, to the byte."""
    (home / "trains.py").write_text(TRAINS)
    processors = (
        home / "cpu"
    )  # PyTorch looks up what kind they are, and what the kernel says of this machine's is not Arm's
    for number in (0, 1):
        described = processors / f"cpu{number}" / "regs" / "identification"
        described.mkdir(parents=True)
        (described / "midr_el1").write_text(CORTEX_A72 + "\n")
    for name in ("possible", "present", "online"):
        (processors / name).write_text("0-1\n")
    words = ["imagine", "--gpu", "a10", "--name", "step", "--"]
    here(home)(*words, str(python(NEWEST)), str(home / "trains.py"))
    want = imagined(here(home)("show", "step", "--json").stdout)
    hightide = shlex.quote(str(OUT / "linux-arm64" / "hightide"))
    as_arm(
        home,
        "mount --bind cpu /sys/devices/system/cpu",
        "export QEMU_CPU=cortex-a72 PYTHONPATH=" + shlex.quote(str(wheels)),
        f"{hightide} {shlex.join(words)} python3.11 trains.py",
    )
    got = imagined(here(home)("show", "step", "--json").stdout)
    assert got == want, f"on arm64 {got}, here {want}"
    print(f"imagined on both: {want}")


def imagined(shown: str) -> dict[str, Any]:
    """What a report says of the device."""
    report = json.loads(shown)
    assert report["headline"]["ended"]["kind"] == "fits", report["headline"]
    tables = {table["name"]: table["rows"] for table in report["tables"]}
    peak = {key: report["headline"]["peak"][key] for key in ("device_used_bytes", "allocated_bytes", "reserved_bytes")}
    return {**peak, "steps": report["headline"]["steps"], "categories": tables["categories"]}


def main() -> int:
    build()
    if sys.argv[1:2] == ["--imagine"]:
        return inturn.run([("arm_imagines", partial(in_a_folder, partial(arm_imagines, Path(sys.argv[2]).resolve())))])
    # Each waits for its programs most of the time. Those under Wine are one lane, as they share its server.
    lanes = (
        (
            windows_says_the_same,
            windows_says_what_it_cannot,
            windows_records,
            windows_agent,
            windows_attaches_and_benches,
            windows_serves_pages,
        ),
        (
            arm_says_the_same,
            arm_is_translated,
            arm_libraries,
            arm_records,
            arm_attaches_and_benches,
            musl_records,
            gvisor_records,
        ),
    )
    with ThreadPoolExecutor(len(lanes)) as pool:
        return max(pool.map(in_turn, lanes))


def in_turn(tests: tuple[Callable[[Path], None], ...]) -> int:
    """The tests of a lane one after the other; they are counted as those of all lanes together."""
    return inturn.run((test.__name__, partial(in_a_folder, test)) for test in tests)


def in_a_folder(test: Callable[[Path], None]) -> None:
    with tempfile.TemporaryDirectory(prefix="hightide-platforms-") as folder:
        test(Path(folder))


if __name__ == "__main__":
    sys.exit(main())
