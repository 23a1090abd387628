"""What recording costs a program while it runs without a pause: variants side by side on one core.

    python bench/beside.py [--rounds 15] [--seconds 20] [--realtime]

plain, plain again, default and no-stacks train at the same time, and the scheduler gives each a few
milliseconds in turn: what disturbs the machine disturbs all of them. Compared is the processor time of a step; the
second plain one shows how far that can be trusted. Engines run on the other cores. A program has a quarter of
a core here, so what hightide allows itself by the clock (edges, samples of the heap) weighs more than alone.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from subject import script

from common import PYTHON, Recordings, Row, exit_code, publish, ratios

BLOCK = 5  # steps between two looks at the clock
BARS = {"plain again": None, "default": 1.02, "no-stacks": 1.01}


def per_step(process: subprocess.Popen[str], seconds: float, block: int) -> float:
    """Let it train for so long, a block of steps at a time; processor seconds of a step."""
    assert process.stdin is not None and process.stdout is not None
    steps, spent, end = 0, 0.0, time.monotonic() + seconds
    while time.monotonic() < end:
        process.stdin.write(f"{block}\n")
        process.stdin.flush()
        spent += float(process.stdout.readline().split()[1])
        steps += block
    return spent / steps


def together(commands: Mapping[str, Sequence[str]], seconds: float, seed: int, block: int = BLOCK) -> dict[str, float]:
    """Fresh processes of all variants with the same seed of hashes, all started before any is measured."""
    environment = os.environ | {"PYTHONHASHSEED": str(seed)}
    running = {
        name: subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        for name, command in commands.items()
    }
    for name, process in running.items():
        assert process.stdout is not None
        if process.stdout.readline().strip() != "ready":
            sys.exit(f"{name} did not start")
    with ThreadPoolExecutor(len(running)) as pool:
        found = dict(
            zip(running, pool.map(lambda process: per_step(process, seconds, block), running.values()), strict=True)
        )
    for process in running.values():
        process.communicate()
    return found


def pinned(*program: object, realtime: bool) -> list[str]:
    """A program on the first core, before all other programs of it if so wished, as only root may."""
    return ["taskset", "-c", "0", *(["chrt", "--rr", "1"] if realtime else []), *map(str, program)]


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure what recording costs, side by side.")
    parser.add_argument("--quick", action="store_true", help="two rounds")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=20, help="of each round")
    parser.add_argument("--realtime", action="store_true", help="before all other programs of that core, as root may")
    options = parser.parse_args()
    rounds, data = [], Recordings()
    program = pinned(PYTHON, script("loop.py"), realtime=options.realtime)
    commands = {"plain": program, "plain again": program, "default": [*data.command(), *program],
                "no-stacks": [*data.command("--no-stacks"), *program]}  # fmt: skip
    for number in range(2 if options.quick else options.rounds):
        rounds.append(together(commands, options.seconds, number))
        print(f"\r  round {number + 1}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    plain = [found["plain"] for found in rounds]
    rows = []
    for name, bar in BARS.items():
        ratio = ratios([found[name] for found in rounds], plain)
        held = None if bar is None else ratio.high <= bar
        rows.append(Row(f"processor time of a step, {name}", ratio.text(), f"<= {bar:.2f}" if bar else "", held))
    publish("beside", rows, rounds)
    return exit_code(rows)


if __name__ == "__main__":
    sys.exit(main())
