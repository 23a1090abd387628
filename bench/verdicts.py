"""Small programs, each with the verdict that a GPU would give: what does `hightide imagine` say?

    python bench/verdicts.py [--only NAME …] [--jobs 2] [--python PATH] [--quick] [--host]

A program of bench/verdicts says in its docstring what is true of it:

    gpu: 1 GiB                       memory of the device; a process takes CONTEXT of it beside the allocator
    truth: fits | out of memory      what a GPU would do, by closed form or by a run on the host
    truth: fits, 64 + 2 * 16 MiB     and the most that its tensors hold, which must come out within WITHIN
    flags: --steps 20                of hightide imagine
    env: NAME=VALUE                  of the program
    with: libraries                  the environment that it runs in, of those that scripts/setup makes
    host: 642 + 5 * 64 MiB           what its tensors hold on the host, where other kernels than a GPU's are the reason
    says: TEXT                       what the report must say, "says not" what it must not

Lines whose number only a kernel computes are marked `# DECIDES`. A conditional verdict is right where it names one of
them. Of a program without such a mark it is neither right nor false, and counted. With --host the programs run on the
host, with their true values, and the most that their tensors hold there is compared: with the bytes that a program says,
else it lies on that side of the memory which the truth names. What needs a GPU does not run, and is counted.
Programs whose environment is not there are left out, and counted.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import BENCH, CACHE, HIGHTIDE, PYTHON, Row, exit_code, publish, run, show

PROGRAMS = BENCH / "verdicts"
CONTEXT = "256MiB"
WITHIN = 0.03
FALSE_OOM = 2  # of all, at most
QUICK = (
    "branch_assert",
    "curriculum_20",
    "evaluation_keeps",
    "evaluation_named",
    "longest_first",
    "moe_sorted",
    "size_sum_oom",
    "truncated",
)
RIGHT, CAUTIOUS, FALSE_FIT, FALSE_OUT, WRONG = "right", "cautious", "FALSE FIT", "FALSE OUT OF MEMORY", "WRONG"


@dataclass
class Program:
    """A program and its truth."""

    path: Path
    memory: str
    fits: bool
    bytes: float | None
    host: float | None
    flags: list[str]
    env: dict[str, str]
    says: list[str]
    says_not: list[str]
    python: Path | None  # None: the one of --python

    @property
    def lines(self) -> set[int]:
        return {n for n, line in enumerate(self.path.read_text().splitlines(), 1) if "# DECIDES" in line}


@dataclass
class Judged:
    """What was said of a program."""

    program: Program
    said: dict[str, Any]
    text: str
    kind: str = RIGHT
    why: list[str] = field(default_factory=list)


def read(path: Path) -> Program:
    """A program by what its docstring says."""
    text = path.read_text()

    def all_of(name: str) -> list[str]:
        return re.findall(rf"^{name}: (.+)$", text, re.MULTILINE)

    truth = (
        re.fullmatch(r"(fits|out of memory)(?:, ([\d.+*MiB ]+) MiB)?", all_of("truth")[0]) if all_of("truth") else None
    )
    if truth is None or not all_of("gpu"):
        sys.exit(f"{path} does not say its truth")
    host = next(iter(all_of("host")), None)
    env = dict(pair.split("=", 1) for pair in all_of("env"))
    flags = [word for line in all_of("flags") for word in shlex.split(line)]
    memory = all_of("gpu")[0].replace(" ", "")
    python = next((CACHE / name / "bin/python" for name in all_of("with")), None)
    return Program(
        path,
        memory,
        truth[1] == "fits",
        bytes_of(truth[2]),
        bytes_of(host),
        flags,
        env,
        all_of("says"),
        all_of("says not"),
        python,
    )


def bytes_of(text: str | None) -> float | None:
    """Bytes of a sum of MiB in a file of our own."""
    return eval(text.replace("MiB", "")) * 2**20 if text else None


def judge(program: Program, python: Path) -> Judged:
    with tempfile.TemporaryDirectory(prefix="hightide-verdicts-") as folder:
        verdict = Path(folder) / "verdict.json"
        done = run(
            [HIGHTIDE, "imagine", "--data-dir", folder, "--gpu", "a10", "--memory", program.memory, "--context", CONTEXT,
             "--no-suggest", f"--json={verdict}", *program.flags, "--", program.python or python, program.path],
            env={"OMP_NUM_THREADS": "1", **program.env}, cwd=Path(folder),
        )  # fmt: skip
        said = json.loads(verdict.read_text()) if verdict.exists() else {"verdict": "none"}
    judged = Judged(program, said, done.stdout + done.stderr)
    decide(judged)
    mark = {RIGHT: "ok ", CAUTIOUS: "?  "}.get(judged.kind, "BAD")
    print(f"  {mark} {program.path.stem}: {said['verdict']} {'; '.join(judged.why)}", file=sys.stderr, flush=True)
    return judged


def decide(judged: Judged) -> None:
    """Whether what was said is true."""
    program, said = judged.program, judged.said
    verdict, why = said["verdict"], judged.why
    flat = " ".join(judged.text.split())
    missing = [text for text in program.says if text not in flat] + [f"not: {t}" for t in program.says_not if t in flat]
    if verdict == "conditional":
        named = {u.get("line") for u in said.get("undecided", [])}
        if program.lines & named:
            return
        judged.kind = WRONG if program.lines else CAUTIOUS
        why.append(f"rests on {sorted(named, key=str)}, decided at {sorted(program.lines)}")
    elif verdict in ("fits", "tight"):
        judged.kind = RIGHT if program.fits else FALSE_FIT
        held = said.get("peak_allocated_bytes", 0)
        if program.bytes and abs(held / program.bytes - 1) > WITHIN:
            judged.kind = WRONG
            why.append(f"{held / 2**20:.1f} MiB, not {program.bytes / 2**20:.1f}")
    elif verdict == "oom":
        judged.kind = FALSE_OUT if program.fits else RIGHT
    else:
        judged.kind = WRONG
        why.append(judged.text.strip()[-600:])
    if missing and judged.kind == RIGHT:
        judged.kind = WRONG
        why.append(f"does not say {missing}")


def rows(judged: list[Judged], left_out: int) -> list[Row]:
    kinds = Counter(j.kind for j in judged)
    each = [
        Row(j.program.path.stem, f"{j.said['verdict']} ({j.kind})", "fits" if j.program.fits else "oom") for j in judged
    ]
    conditional = sum(j.said["verdict"] == "conditional" for j in judged)
    return [
        *each,
        Row("programs judged as a GPU would", f"{kinds[RIGHT]} of {len(judged)}"),
        Row("false fits", str(kinds[FALSE_FIT]), "0", not kinds[FALSE_FIT]),
        Row("false out of memory", str(kinds[FALSE_OUT]), f"{FALSE_OOM}", kinds[FALSE_OUT] <= FALSE_OOM),
        Row("conditional without need", f"{kinds[CAUTIOUS]} of {conditional}"),
        Row("another line, figure or sentence, or none", str(kinds[WRONG]), "0", not kinds[WRONG]),
        Row("left out: scripts/setup libraries makes their environment", str(left_out)),
    ]


def on_host(program: Program, python: Path) -> str:
    """How the most that a program's tensors hold on the host, where its values are true, agrees with what it says."""
    with tempfile.TemporaryDirectory(prefix="hightide-verdicts-") as folder:
        done = run(
            [program.python or python, BENCH / "verdicts_host.py", program.path], env=program.env, cwd=Path(folder)
        )
    last = done.stdout.strip().splitlines()[-1:] or [""]
    held = int(last[0]) if not done.code and last[0].isdigit() else None
    told = program.host or program.bytes
    if held is None:
        kind = "does not run there"
    elif told:
        kind = RIGHT if abs(held / told - 1) <= WITHIN else WRONG
    else:
        kind = RIGHT if (held + size(CONTEXT) <= size(program.memory)) == program.fits else WRONG
    said = f"{told / 2**20:.1f} MiB" if told else f"{'fits' if program.fits else 'oom'} of {program.memory}"
    text = "nothing" if held is None else f"{held / 2**20:.1f} MiB"
    print(f"  {kind} {program.path.stem}: {text}, told {said}", file=sys.stderr, flush=True)
    return kind


def size(text: str) -> int:
    """Bytes of "256MiB" or "1GiB"."""
    return int(text[:-3]) * (2**20 if text.endswith("MiB") else 2**30)


def host_rows(kinds: list[str]) -> list[Row]:
    counts = Counter(kinds)
    return [
        Row("programs on the host as they say", f"{counts[RIGHT]} of {len(kinds)}"),
        Row("otherwise than they say", str(counts[WRONG]), "0", not counts[WRONG]),
        Row("that need a GPU", str(len(kinds) - counts[RIGHT] - counts[WRONG])),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Hold verdicts of imagine against those of a GPU.")
    parser.add_argument("--only", nargs="+", default=[], help="programs whose name has one of these in it")
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time")
    parser.add_argument("--python", type=Path, default=PYTHON, help="an interpreter with PyTorch and transformers")
    parser.add_argument("--quick", action="store_true", help="a handful; leaves no figures")
    parser.add_argument("--host", action="store_true", help="run them on the host, to see what is true")
    options = parser.parse_args()
    only = options.only or (QUICK if options.quick else [""])
    programs = [read(p) for p in sorted(PROGRAMS.glob("[a-z]*.py")) if any(name in p.stem for name in only)]
    there = [p for p in programs if p.python is None or p.python.exists()]
    left_out, programs = len(programs) - len(there), there
    with ThreadPoolExecutor(options.jobs) as pool:
        if options.host:
            found = host_rows(list(pool.map(lambda program: on_host(program, options.python), programs)))
            show(found)
            return exit_code(found)
        judged = list(pool.map(lambda program: judge(program, options.python), programs))
    found = rows(judged, left_out)
    raw = {j.program.path.stem: {"kind": j.kind, "why": j.why, "said": j.said["verdict"]} for j in judged}
    show(found) if options.quick else publish("verdicts", found, raw)
    return exit_code(found)


if __name__ == "__main__":
    sys.exit(main())
