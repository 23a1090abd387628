"""What a real NVIDIA GPU shows, beside what the imaginary one says: eight minutes at most, no network.

    scripts/gpu                        on a machine with an NVIDIA GPU: all sections, into testdata/real/gpu/GPU/gpu.json
    scripts/gpu --only context graphs  some sections
    scripts/gpu --imagined a10         all of it on an imaginary GPU, to see that it works; into build/gpu-imagined
    scripts/gpu --table gpu.json       write a measurement into the table of docs/fidelity.md

PYTHON names the interpreter that has a CUDA build of PyTorch (default python3). bin/hightide must be there (make binary).
Nothing else should use the card meanwhile. Each section has a time limit of its own, and is a process of its own here and
on the card's imaginary twin. What one fails of is in the JSON, and the next begins.

Exit codes: 0 every section is done, or cannot be done here; 1 some failed or were out of time; 2 wrong usage;
4 there is no GPU, no PyTorch that sees it, or no hightide."""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]
from common import HIGHTIDE, ROOT  # noqa: E402

sys.path[:0] = [str(HERE)]
import table  # noqa: E402
from card import BEGIN  # noqa: E402

MOST = 480.0  # seconds
KILLED_AFTER = 5.0  # seconds after it was asked to end


@dataclass
class Section:
    name: str
    limit: float  # seconds
    what: str

    @property
    def ours(self) -> bool:
        """Whether it runs hightide's commands itself, rather than a probe that runs here and on the twin."""
        return self.name in ("calibrate", "run", "programs")


SECTIONS = [
    Section("machine", 40, "versions, the card's properties"),
    Section("nvml", 20, "answers of NVML and of the driver"),
    Section("context", 90, "what a process takes beside its allocator, by stage, modules loaded lazily and eagerly"),
    Section("graphs", 60, "bytes by node of a CUDA graph"),
    Section("workspaces", 90, "scratch of cuBLAS, cuDNN, cuSOLVER, cuFFT"),
    Section("nccl", 60, "buffers of NCCL"),
    Section("calibrate", 40, "hightide info --calibrate"),
    Section("run", 40, "hightide run of a program whose memory is known"),
    Section("programs", 240, "ten programs here and on the imaginary twin, event by event"),
]


@dataclass
class Ended:
    """A process that has ended, or was ended."""

    figures: list[dict[str, Any]]
    why: str  # it failed; empty: it did not
    seconds: float


class Running:
    """A probe in a process group of its own, that is ended with all it has started."""

    def __init__(self, command: list[object], environment: dict[str, str], figures: Path, limit: float) -> None:
        self.figures, self.limit, self.began = figures, limit, time.monotonic()
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [str(word) for word in command], env={**os.environ, **environment}, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=self.errors, stderr=self.errors,
        )  # fmt: skip

    def end(self) -> Ended:
        why = ""
        try:
            self.process.wait(max(0.1, self.began + self.limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            why = f"out of time: {self.limit:.0f} s"
            self.stop()
        seconds = time.monotonic() - self.began
        if not why and self.process.returncode and not self.ran_imagined():
            self.errors.seek(0)
            lines = self.errors.read().decode(errors="replace").strip().splitlines() or [""]
            said = [line for line in lines if line.startswith("hightide: ")] or lines[-1:]
            why = f"exit code {self.process.returncode}: {said[0][:300]}"
        self.errors.close()
        return Ended(of_first_run(self.figures), why, seconds)

    def ran_imagined(self) -> bool:
        """Whether hightide's exit code is of a verdict on memory, and the program came to its end."""
        verdict = self.figures.with_name(f"{self.figures.name}.verdict")
        told = json.loads(verdict.read_text() or "{}") if verdict.exists() else {}
        return told.get("verdict") in ("conditional", "unused") and not told.get("exit_code")

    def stop(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
                self.process.wait(KILLED_AFTER)
                return
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue
        self.process.wait()


def of_first_run(path: Path) -> list[dict[str, Any]]:
    """Figures in order. Where hightide ran the probe again with other numbers, those of the first run."""
    runs = path.read_text().split(BEGIN) if path.exists() else []
    found = []
    for line in runs[1].splitlines() if len(runs) > 1 else []:
        try:
            found.append(json.loads(line))
        except ValueError:  # cut by a signal
            continue
    return found


class Measurement:
    """All sections, with what is written down of them after each."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.began = options, time.monotonic()
        self.label = "imagined" if options.imagined else "measured"
        self.environment = {
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "HARDWARE_DEVICE": str(options.device),
            "HF_HUB_OFFLINE": "1",
        }
        self.twin, self.cards = options.twin or options.imagined, 1
        if not options.imagined and options.cards == 1:
            self.environment["CUDA_VISIBLE_DEVICES"] = str(options.device)
        self.scratch = tempfile.TemporaryDirectory(prefix="hightide-gpu-")
        self.out = Path(options.out) if options.out else ROOT / "build" / "gpu-imagined"
        version = subprocess.run([HIGHTIDE, "--version"], capture_output=True, text=True).stdout.strip()
        self.told: dict[str, Any] = {
            "version": 1, "label": self.label, "note": NOTES[self.label], "made_by": "scripts/gpu", "hightide": version,
            "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "limit_s": options.limit, "machine": machine(),
            "sections": {},
        }  # fmt: skip

    def imagine(self, gpu: str, figures: Path) -> list[object]:
        data = f"{self.scratch.name}/data"
        words = ["--steps", "0", "--no-suggest", "--quiet", "--data-dir", data, f"--json={figures}.verdict"]
        return [HIGHTIDE, "imagine", "--gpu", gpu, "--gpus", self.cards, *words, "--"]

    def probe(self, section: Section, limit: float, twin: bool) -> Running:
        figures = Path(self.scratch.name) / f"{section.name}{'.twin' if twin else ''}"
        gpu = self.twin if twin else self.options.imagined
        before = self.imagine(gpu, figures) if gpu else []
        more = {"HARDWARE_CARDS": str(self.cards), **({"HARDWARE_DEVICE": "0"} if gpu else {})}
        command = [*before, sys.executable, HERE / f"probe_{section.name}.py", figures]
        environment = {**self.environment, **more}
        if gpu and "CUDA_VISIBLE_DEVICES" in environment:
            environment["CUDA_VISIBLE_DEVICES"] = "0"
        return Running(command, environment, figures, limit)

    def own(self, section: Section, limit: float) -> Running:
        figures = Path(self.scratch.name) / section.name
        words = ["imagine", "--gpu", self.options.imagined, "--steps", "0", "--no-suggest"]
        words = words if self.options.imagined else ["run", "--no-stacks", "--snapshot-on", "never"]
        self.out.mkdir(parents=True, exist_ok=True)
        place = [figures, self.out if section.name == "programs" else self.scratch.name, self.twin]
        command = [sys.executable, HERE / "probe_hightide.py", section.name, *place, *words]
        return Running(command, self.environment, figures, limit)

    def section(self, section: Section) -> dict[str, Any]:
        limit = min(section.limit, self.options.limit - (time.monotonic() - self.began))
        if limit < 1:
            return {"state": "out of time", "why": "no time was left of the whole limit", "figures": []}
        twin = None
        if section.ours:
            running = self.own(section, limit)
        else:
            running = self.probe(section, limit, twin=False)
            twin = self.probe(section, limit, twin=True) if self.twin else None
        here = running.end()
        beside = twin.end() if twin else None
        figures = table.joined(here.figures, beside.figures if beside else [])
        failures = [figure["name"] for figure in here.figures if figure["unit"] == "failure"]
        told: dict[str, Any] = {
            "state": "done",
            "what": section.what,
            "seconds": round(here.seconds, 1),
            "limit_s": limit,
        }
        if here.why or failures:
            told |= {"state": "in part" if len(here.figures) > len(failures) else "failed"}
            told["why"] = here.why or f"failed: {', '.join(failures)}"
        elif here.figures and all(figure["unit"] == "not here" for figure in here.figures):
            told["state"] = "not here"
        if beside and beside.why:
            told["twin_failed"] = beside.why
        return {**told, "figures": figures}

    def begin(self) -> None:
        """The first section, which says what card it is. Without one, nothing else is tried."""
        section = SECTIONS[0]
        ended = self.probe(section, section.limit, twin=False).end()
        known = {figure["name"]: figure["value"] for figure in ended.figures}
        if ended.why or "card: name" not in known:
            why = ended.why.partition(": ")[2] or ended.why
            stop(why, f"has {sys.executable} a CUDA build of PyTorch? PYTHON names another one")
        name = str(known["card: name"])
        self.cards = min(self.options.cards, int(known["cards"])) if not self.options.imagined else self.options.cards
        if not self.options.imagined:
            self.twin = self.options.twin or self.in_catalogue(name)
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        if not self.options.out:
            self.out = (self.out if self.options.imagined else ROOT / "testdata" / "real" / "gpu") / slug
        figures = table.joined(ended.figures, [])
        state = {"state": "done", "what": section.what, "seconds": round(ended.seconds, 1), "limit_s": section.limit}
        self.told |= {"gpu": name, "cards": self.cards, "twin": self.twin}
        self.told["sections"][section.name] = {**state, "figures": figures}

    def in_catalogue(self, name: str) -> str:
        """The name, if hightide knows such a GPU."""
        known = subprocess.run([HIGHTIDE, "gpus", name], capture_output=True, text=True)
        return name if known.returncode == 0 else ""

    def write(self) -> Path:
        self.told["seconds"] = round(time.monotonic() - self.began, 1)
        self.out.mkdir(parents=True, exist_ok=True)
        path = self.out / ("gpu.imagined.json" if self.options.imagined else "gpu.json")
        unfinished = path.with_suffix(".part")
        unfinished.write_text(json.dumps(self.told, indent=1, ensure_ascii=False) + "\n")
        unfinished.replace(path)
        return path

    def all(self) -> int:
        self.begin()
        wrong = 0
        for section in SECTIONS[1:]:
            if self.options.only and section.name not in self.options.only:
                continue
            told = self.told["sections"][section.name] = self.section(section)
            wrong += told["state"] not in ("done", "not here")
            print(f"{section.name}: {told['state']}{', ' + told['why'] if told.get('why') else ''}", flush=True)
            path = self.write()
        path = self.write()
        print(table.text(self.told))
        print(f"{path}, {self.label}, {self.told['seconds']:.0f} s")
        return 1 if wrong else 0


NOTES = {
    "measured": "Figures are of the card; those of its twin are imagined.",
    "imagined": "No GPU was here: every figure is imagined. This shows that the script works, and nothing of any card.",
}


def machine() -> dict[str, Any]:
    """What can be said without a card."""
    memory = re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    listed = subprocess.run(["sh", "-c", "nvidia-smi || true"], capture_output=True, text=True).stdout
    return {
        "system": platform.platform(), "machine": platform.machine(), "cpus": os.cpu_count(), "python": platform.python_version(),
        "host_memory_bytes": int(memory[1]) * 1024 if memory else None, "nvidia_smi": listed.splitlines(),
        "environment": {n: v for n, v in os.environ.items() if n.startswith(("CUDA_", "NVIDIA_", "NCCL_", "PYTORCH_"))},
    }  # fmt: skip


def stop(problem: str, hint: str) -> None:
    print(f"scripts/gpu: {problem}; {hint}", file=sys.stderr)
    sys.exit(4)


def driver_sees_cards() -> bool:
    try:
        driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    except OSError:
        return False
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def main() -> int:
    parser = argparse.ArgumentParser(
        "scripts/gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [section.name for section in SECTIONS[1:]]
    parser.add_argument("--only", nargs="+", choices=names, default=[], metavar="SECTION", help=", ".join(names))
    parser.add_argument(
        "--limit", type=float, default=MOST, metavar="SECONDS", help="of all sections together (default 480)"
    )
    parser.add_argument("--out", help="folder of the JSON and the recordings")
    parser.add_argument("--device", type=int, default=0, help="which card, as nvidia-smi counts them")
    parser.add_argument(
        "--cards", type=int, default=1, help="how many cards NCCL may have; with more than one, from card 0 on"
    )
    parser.add_argument(
        "--twin", default="", metavar="GPU", help="the catalogue's name of this card, where it is not known by its own"
    )
    parser.add_argument("--imagined", default="", metavar="GPU", help="measure nothing: run on this imaginary GPU")
    parser.add_argument(
        "--table", nargs="+", type=Path, metavar="JSON", help="write measurements into docs/fidelity.md and stop"
    )
    options = parser.parse_args()
    if options.table:
        return table.write(options.table)
    if options.cards > 1 and options.device:
        parser.error("--cards begins with card 0: leave --device out")
    if not HIGHTIDE.exists():
        stop(f"{HIGHTIDE} is not there", "build it: make binary")
    if not options.imagined and not driver_sees_cards():
        stop(
            "there is no NVIDIA GPU here",
            "run it on a machine that has one, or see it work: scripts/gpu --imagined a10",
        )
    return Measurement(options).all()


if __name__ == "__main__":
    sys.exit(main())
