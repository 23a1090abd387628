"""What recording costs: time of the loop, CPU of the whole tree, time added to starting up.

    python bench/overhead.py [--quick] [--pairs 45] [--turns 4] [--part loop|pinned|mallocs|startup|others]

The loops are measured as subject.py says: every pair is fresh processes that take mirrored turns; a ratio
is that of all their turns, and the bound is the upper 95 % one of a bootstrap over the pairs. Starting and
ending are measured for themselves. memray and scalene stand beside for scale.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from subject import Spent, script, total, trial

from common import (
    HIGHTIDE,
    PROFILERS,
    PYTHON,
    Done,
    Interval,
    Recordings,
    Row,
    bootstrap,
    exit_code,
    interleaved,
    must,
    publish,
    ratios,
    run,
)


def succeed(command: list[str]) -> Done:
    return must(run(command))


LOOP_STEPS = 10  # a block of the training: about 0.1 s, as neighbours differ by as much over seconds
MALLOCS = 200_000  # a block of mallocs.py: about 0.2 s
BARS = {"default": 1.02, "no-stacks": 1.01}


@dataclass
class Plan:
    """How much to measure: pairs of fresh processes, turns of each, and seconds after which no further pair
    begins (a busy machine gets through fewer, and the table says how many)."""

    pairs: int
    turns: int
    at_most: float


Trials = list[list[dict[str, Spent]]]  # by trial and turn


def trials(plan: Plan, program: str, work: int, prefix: Sequence[str] = ()) -> Trials:
    """Trials of a program as it is, recorded with default flags, and recorded without stacks."""
    data = Recordings()
    plain = [*prefix, str(PYTHON), str(script(program))]
    variants = {
        "plain": (plain, False),
        "default": ([*prefix, *data.command(), *plain[len(prefix) :]], True),
        "no-stacks": ([*prefix, *data.command("--no-stacks"), *plain[len(prefix) :]], True),
    }
    found: Trials = []
    begin = time.monotonic()
    while len(found) < plan.pairs and time.monotonic() - begin < plan.at_most:
        found.append(trial(variants, work, plan.turns, len(found)))
        print(f"\r  trial {len(found)} of {plan.pairs}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def against_plain(found: Trials, name: str, what: Callable[[Spent], float]) -> Interval:
    return ratios([what(total(t, name)) for t in found], [what(total(t, "plain")) for t in found])


def figures(found: Trials, turns: int, what: str, bars: Mapping[str, float], tree_bar: float | None) -> list[Row]:
    """Wall time, the program's processor time, and that of program and engine, against the plain program."""
    rows = []
    for name, bar in bars.items():
        wall = against_plain(found, name, lambda spent: spent.wall)
        rows.append(Row(f"{what}, {name}", wall.text(), f"<= {bar:.2f}", wall.high <= bar))
        rows.append(Row("  its processor time", against_plain(found, name, lambda spent: spent.cpu).text()))
        tree = against_plain(found, name, Spent.tree)
        held = None if tree_bar is None else tree.high <= tree_bar
        rows.append(Row("  with the engine's", tree.text(), "" if tree_bar is None else f"<= {tree_bar:.2f}", held))
    recorded = [total(t, "default") for t in found]
    share = bootstrap([spent.engine / spent.wall for spent in recorded])
    rows.append(Row("  the engine's share of a core, default", share.text(4)))
    rows.append(Row("  turns that counted", f"{sum(map(len, found))} of {len(found) * turns} in {len(found)} pairs"))
    return rows


def raw(found: Trials) -> object:
    return [[{name: vars(spent) for name, spent in turn.items()} for turn in t] for t in found]


def loop(plan: Plan) -> tuple[list[Row], object]:
    """The CPU-bound training."""
    found = trials(plan, "loop.py", LOOP_STEPS)
    return figures(found, plan.turns, "training loop", BARS, 1.03), raw(found)


def pinned(plan: Plan) -> tuple[list[Row], object]:
    """The same with the training and the engine sharing one core."""
    found = trials(plan, "loop.py", LOOP_STEPS, ["taskset", "-c", "0"])
    return figures(found, plan.turns, "training loop on one core", BARS, 1.03), raw(found)


def mallocs(plan: Plan) -> tuple[list[Row], object]:
    found = trials(plan, "mallocs.py", MALLOCS)
    rate = bootstrap([2 * len(t) * MALLOCS / total(t, "plain").wall for t in found])
    rows = figures(found, plan.turns, "a million mallocs a second", {"default": 1.10}, None)
    return [*rows, Row("  rate of that loop without hightide", f"{rate.mean / 1e6:.2f} million/s")], raw(found)


def others(plan: Plan) -> tuple[list[Row], object]:
    """memray and scalene on both loops, for scale; no bars."""
    if not PROFILERS.exists():
        return [Row("memray, scalene", "not installed: scripts/setup bench")], None
    rows: list[Row] = []
    kept: dict[str, object] = {}
    profilers = {"memray": ["memray", "run", "-q", "-f"], "memray --native": ["memray", "run", "-q", "-f", "--native"],
                 "scalene": ["scalene", "run"]}  # fmt: skip
    for program, work in (("loop.py", LOOP_STEPS), ("mallocs.py", MALLOCS)):
        for name, words in profilers.items():
            with tempfile.TemporaryDirectory() as folder:
                plain = [str(PROFILERS), str(script(program))]
                observed = ["timeout", "--kill-after=5", "120", str(PROFILERS), "-m", *words, "-o", f"{folder}/out"]
                variants = {"plain": (plain, False), name: ([*observed, plain[1]], False)}
                try:
                    found = [trial(variants, work, plan.turns, seed) for seed in range(max(3, plan.pairs // 9))]
                except SystemExit as error:
                    rows.append(Row(f"{program}, {name}", f"no figure: {str(error)[-60:]}"))
                    continue
            rows.append(Row(f"{program}, {name}", against_plain(found, name, lambda spent: spent.wall).text()))
            kept[f"{program} {name}"] = raw(found)
    return rows, kept


def startup(plan: Plan) -> tuple[list[Row], object]:
    """Wall time that `hightide run` adds to starting Python, from the shell's point of view, and processor
    time of everything: that one scatters less, and shows what another core hides."""
    rows, times = [], {}
    for what, code, rounds, bar in (
        ("python -c pass", "pass", plan.pairs, 60),
        ("import torch", "import torch", plan.pairs, 150),
    ):
        data = Recordings()
        plain = [str(PYTHON), "-c", code]
        recorded = [*data.command(), *plain]
        runs = interleaved(rounds, {"plain": partial(succeed, plain), "run": partial(succeed, recorded)})
        added = bootstrap([1000 * (a.wall - b.wall) for a, b in zip(runs["run"], runs["plain"], strict=True)])
        rows.append(Row(f"added to {what}", f"{added.text(0)} ms", f"<= {bar} ms", added.high <= bar))
        cpu = bootstrap([1000 * (a.cpu - b.cpu) for a, b in zip(runs["run"], runs["plain"], strict=True)])
        rows.append(Row(f"  its processor time, {what}", f"{cpu.text(0)} ms"))
        times[what] = {name: [[done.wall, done.cpu] for done in found] for name, found in runs.items()}
    return rows, times


PARTS = {"loop": loop, "pinned": pinned, "mallocs": mallocs, "startup": startup, "others": others}


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure what recording costs.")
    parser.add_argument("--quick", action="store_true", help="3 pairs: rough")
    parser.add_argument("--pairs", type=int, default=45)
    parser.add_argument("--turns", type=int, default=4, help="turns of each pair")
    parser.add_argument("--part", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--at-most", type=float, default=3600, help="seconds for the pairs of a part")
    options = parser.parse_args()
    if not HIGHTIDE.exists():
        sys.exit(f"{HIGHTIDE} is not built: make build")
    pairs, turns = (3, options.turns) if options.quick else (options.pairs, options.turns)
    plan = Plan(pairs, turns, options.at_most)
    rows: list[Row] = []
    kept = {}
    for name in options.part:
        print(f"{name}:", file=sys.stderr)
        found, kept[name] = PARTS[name](plan)
        rows += found
    publish("overhead", rows, kept)
    return exit_code(rows)


if __name__ == "__main__":
    sys.exit(main())
