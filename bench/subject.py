"""Programs that work a block at a time on demand, so that variants take turns within seconds.

    plain ▸ default ▸ no-stacks ▸ no-stacks ▸ default ▸ plain ▸ …      one trial: fresh processes, mirrored turns

Between two runs of one program minutes apart this machine differs by more than what is measured. So
all variants are started, and then each in turn takes a short block of the same work while the others, engines
included, stand still. Drift within a trial cancels; what differs from process to process (addresses, caches)
is in the scatter of the trials, over which the bounds are taken. A turn in which a block of any variant
took DISTURBED times its usual processor time counts for none of them: the machine was somebody else's.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SETTLE = 0.06  # seconds from waking an engine to the block: what it missed is done by then
DISTURBED = 1.25


@dataclass
class Spent:
    """Seconds of the blocks of one variant."""

    wall: float = 0
    cpu: float = 0  # of the program
    engine: float = 0  # of the engine, in the same time

    def tree(self) -> float:
        return self.cpu + self.engine

    def add(self, other: Spent) -> None:
        self.wall += other.wall
        self.cpu += other.cpu
        self.engine += other.engine


@dataclass
class Subject:
    """One running variant. Recorded ones are children of their engine, which is then `process`."""

    command: Sequence[str]
    recorded: bool
    seed: int  # of Python's hashes: which names meet in its dictionaries makes a percent between processes

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONHASHSEED": str(self.seed)},
        )
        if self._answer() != "ready":
            sys.exit(f"{self.command} did not start")
        self._rest()

    def block(self, work: int) -> Spent:
        """Let it do some work; what it and its engine spent."""
        if self.recorded:
            self.process.send_signal(signal.SIGCONT)
        time.sleep(SETTLE)  # all of them: a processor that was idle begins slowly
        before = self._engine()
        assert self.process.stdin is not None
        self.process.stdin.write(f"{work}\n")
        self.process.stdin.flush()
        wall, cpu = map(float, self._answer().split())
        engine = self._engine() - before
        self._rest()
        return Spent(wall, cpu, engine)

    def end(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.communicate()
        if self.process.returncode:
            sys.exit(f"{self.command} ended with {self.process.returncode}")

    def _rest(self) -> None:
        if self.recorded:
            self.process.send_signal(signal.SIGSTOP)

    def _engine(self) -> float:
        """Processor seconds of the engine so far."""
        return time.clock_gettime(~self.process.pid << 3 | 2) if self.recorded else 0.0  # see clock_getcpuclockid

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


def trial(
    variants: Mapping[str, tuple[Sequence[str], bool]], work: int, turns: int, seed: int
) -> list[dict[str, Spent]]:
    """Start every variant (command, whether it is recorded) and let them take turns of two blocks each: what
    they spent in every turn that was not disturbed."""
    subjects = {name: Subject(command, recorded, seed) for name, (command, recorded) in variants.items()}
    for subject in subjects.values():
        subject.start()
    order, found = list(subjects), []
    for _ in range(turns):
        order = order[1:] + order[:1]
        turn = {name: Spent() for name in subjects}
        for name in [*order, *reversed(order)]:
            turn[name].add(subjects[name].block(work))
        found.append(turn)
    for subject in subjects.values():
        subject.end()
    usual = {name: statistics.median(turn[name].cpu for turn in found) for name in subjects}
    return [turn for turn in found if all(turn[name].cpu <= DISTURBED * usual[name] for name in subjects)]


def total(turns: list[dict[str, Spent]], name: str) -> Spent:
    """All turns of one variant together."""
    spent = Spent()
    for turn in turns:
        spent.add(turn[name])
    return spent


def script(name: str) -> Path:
    return Path(__file__).resolve().parent / "programs" / name
