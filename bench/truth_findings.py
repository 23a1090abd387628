"""Leaks and innocents of the kinds people meet: is every leak found, nothing else called one, and its cause named?

A program's docstring says what is true of it:

    truth: leak cause=WORDS      it leaks; WORDS (a regular expression) name the container or the cause
    truth: innocent              it does not, whatever its curve looks like
    in: torch | bench | frameworks      the environment it runs in; torch where nothing is said
    env: NAME=VALUE                     in its environment

Lines of a leak at which a person can mend it, or where the bytes are allocated, are marked `# LEAK`. Of all findings
of kind leak or growth, those that point at such a line of a leak are true, and so are those without a line that name
the cause; precision is their share. A leak is found if one of its findings is true. Its cause is named if a true
finding says so in its holder, title or text, outside of quoted source.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from common import BENCH, CACHE, PYTHON, MiB, Recordings, Row

PROGRAMS = BENCH / "truth" / "findings"
ENVIRONMENTS = {
    "torch": PYTHON,
    "bench": CACHE / "bench" / "bin" / "python",
    "frameworks": CACHE / "frameworks" / "bin" / "python",
}
PRECISION, RECALL, CAUSES = 0.98, 0.95, 0.80  # bars


@dataclass
class Program:
    """A program and its truth."""

    path: Path
    leak: bool
    cause: str = ""
    arguments: tuple[object, ...] = ()
    python: Path = PYTHON
    env: dict[str, str] = field(default_factory=dict)

    @property
    def lines(self) -> set[int]:
        return {n for n, line in enumerate(self.path.read_text().splitlines(), 1) if "# LEAK" in line}


@dataclass
class Judged:
    """What was said of a program."""

    program: Program
    true: list[dict[str, Any]]
    false: list[dict[str, Any]]
    named: bool

    def text(self) -> str:
        if not self.true and not self.false:
            return "no finding"
        said = [f["title"] for f in self.true] + [f"FALSE: {f['title']}" for f in self.false]
        return "; ".join(said)[:160]

    @property
    def ok(self) -> bool:
        return not self.false and bool(self.true) == self.program.leak and (self.named or not self.program.leak)


def at_speeds(
    only: Sequence[str], jobs: int, quick: bool, folder: Path | None, speeds: Sequence[int]
) -> tuple[list[Row], object]:
    """The same with steps that pause for each of these ms in place of their own pauses."""
    found: list[Row] = []
    raw = {}
    for ms in speeds:
        with tempfile.TemporaryDirectory() as copies:
            kept = folder / f"{ms}ms" if folder else None
            some, raw[f"{ms} ms"] = rows(only, jobs, quick, kept, lambda p, ms=ms, to=copies: paced(p, ms, Path(to)))  # type: ignore[misc]
        found += [Row(f"{row.what}, {ms} ms a step", row.figure, row.bar, row.ok) for row in some]
    return found, raw


def paced(program: Program, ms: int, folder: Path) -> Program:
    """The program with other pauses; its lines stay where they are."""
    path = folder / program.path.name
    path.write_text(re.sub(r"time\.sleep\(0\.0\d+\)", f"time.sleep({ms / 1e3})", program.path.read_text()))
    places = [str(program.path.parent), *program.env.get("PYTHONPATH", "").split(":")]
    env = {**program.env, "PYTHONPATH": ":".join(filter(None, places)), "TRUTH_PAUSE": str(ms / 1e3)}
    return replace(program, path=path, env=env)


def rows(
    only: Sequence[str], jobs: int, quick: bool, folder: Path | None,
    changed: Callable[[Program], Program] = lambda program: program,
) -> tuple[list[Row], object]:  # fmt: skip
    programs = [changed(p) for p in known() if not only or any(name in p.path.stem for name in only)]
    if quick and not only:
        programs = programs[::10]
    with ThreadPoolExecutor(jobs) as pool:
        judged = list(pool.map(lambda program: judge(program, folder), programs))
    found = [Row(j.program.path.stem, j.text(), "leak" if j.program.leak else "innocent") for j in judged]
    return [*found, *summary(judged)], {j.program.path.stem: {"true": j.true, "false": j.false} for j in judged}


def known() -> list[Program]:
    """The programs of bench/truth/findings, and of bench/leaks and bench/innocents at a megabyte a step."""
    programs = [read(path) for path in sorted(PROGRAMS.glob("[a-z]*.py"))]
    env = {"PYTHONPATH": str(BENCH / "leaks")}
    for path in sorted((BENCH / "leaks").glob("in_*.py")):
        programs.append(Program(path, True, PLANTED[path.stem], (MiB, 300), env=env))
    for path in sorted((BENCH / "innocents").glob("*.py")):
        programs.append(Program(path, False, "", (MiB, 300), env=env))
    return programs


# What keeps the leaks that are planted in bench/leaks.
PLANTED = {
    "in_closure": "callbacks",
    "in_dict": "outputs",
    "in_extension": "extension",
    "in_graph": "history",
    "in_list": "kept",
    "in_numpy": "features",
    "in_workers": "cache",
}


def read(path: Path) -> Program:
    """A program by what its docstring says."""
    text = path.read_text()
    truth = re.search(r"^truth: (leak|innocent)(?: cause=(\S+))?$", text, re.MULTILINE)
    if truth is None:
        sys.exit(f"{path} does not say its truth")
    where = re.search(r"^in: (\w+)$", text, re.MULTILINE)
    env = dict(pair.split("=", 1) for pair in re.findall(r"^env: (\w+=\S*)$", text, re.MULTILINE))
    env |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    return Program(path, truth[1] == "leak", truth[2] or "", (), ENVIRONMENTS[where[1] if where else "torch"], env)


def judge(program: Program, folder: Path | None) -> Judged:
    found = [f for f in findings(program, folder) if f["kind"] in ("leak", "growth")]
    true = [f for f in found if is_true(program, f)]
    judged = Judged(program, true, [f for f in found if f not in true], any(names(program, f) for f in true))
    print(f"  {'ok ' if judged.ok else 'BAD'} {program.path.stem}: {judged.text()}", file=sys.stderr, flush=True)
    return judged


def findings(program: Program, folder: Path | None) -> list[dict[str, Any]]:
    """What is said of a program; with a folder its recording is kept there, and read anew where it is there already."""
    kept = folder / program.path.stem if folder else None
    data = Recordings()
    if kept is None or not kept.exists():
        data.record([program.python, program.path, *program.arguments], env=program.env)
        (recording,) = data.path.glob("runs/*/run.hightide")
        if kept is not None:
            kept.mkdir(parents=True)
            recording = Path(shutil.move(recording, kept))
    else:
        (recording,) = kept.glob("*.hightide")
    found: list[dict[str, Any]] = data.report(recording)["findings"]
    return found


def is_true(program: Program, finding: dict[str, Any]) -> bool:
    if not program.leak:
        return False
    if finding.get("file"):
        return Path(finding["file"]).name == program.path.name and finding.get("line") in program.lines
    return names(program, finding)


def names(program: Program, finding: dict[str, Any]) -> bool:
    """Whether a finding names the cause, not only by quoting the line."""
    said = f"{finding.get('holder', '')} {finding['title']} {re.sub(r': `[^`]*`', '', finding['text'])}"
    return re.search(program.cause, said.replace(program.path.name, "")) is not None


def summary(judged: list[Judged]) -> list[Row]:
    leaks = [j for j in judged if j.program.leak]
    true, false = sum(len(j.true) for j in judged), sum(len(j.false) for j in judged)
    found = [j for j in leaks if j.true]
    named = [j for j in found if j.named]
    precision = true / (true + false) if true + false else 1.0
    recall = len(found) / len(leaks) if leaks else 1.0
    causes = len(named) / len(leaks) if leaks else 1.0
    wrong = sum(bool(j.false) for j in judged if not j.program.leak)
    innocent = len(judged) - len(leaks)
    return [
        Row("innocents with a finding", f"{wrong} of {innocent}", "none"),
        Row("findings that are true", f"{true} of {true + false}", f"{PRECISION:.0%}", precision >= PRECISION),
        Row("leaks found", f"{len(found)} of {len(leaks)}", f"{RECALL:.0%}", recall >= RECALL),
        Row(
            "leaks whose container or cause is named",
            f"{len(named)} of {len(leaks)}",
            f"{CAUSES:.0%}",
            causes >= CAUSES,
        ),
    ]


if __name__ == "__main__":
    print(json.dumps([p.path.stem for p in known()]))
