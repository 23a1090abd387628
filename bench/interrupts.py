"""Does an interrupted program end under hightide as it ends without it?

    python bench/interrupts.py [--quick] [--rounds 50] [--only NAME]

Each program of bench/interrupts is interrupted at a random time after it has said "ready", as often with hightide as
without it: from a terminal of its own, where Ctrl-C reaches every process of the job; by a signal to the one process
that was started; and by one to its process group, as timeout and supervisors send it. An end is the wait status, and
what the program wrote after "ready" on its standard output. With hightide every end must be one that the program shows
without it: nearly all of them show only one.
"""

from __future__ import annotations

import argparse
import os
import pty
import random
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence

from common import BENCH, PYTHON, Recordings, Row, exit_code, publish

PATIENCE = 60  # seconds for one run; a program may hang when it is interrupted, also without hightide
LATEST = 0.4  # seconds from "ready" to the interrupt
WAYS = ("Ctrl-C", "kill -INT of it alone", "kill -INT of its group")


class Program:
    """One run of a command that writes into a pipe."""

    def __init__(self, command: Sequence[object], way: str) -> None:
        self.words = [str(word) for word in command]
        self.output, self.way = b"", way
        self.terminal = terminal = way == "Ctrl-C"
        self.reader, writer = os.pipe()
        if terminal:
            self.pid, self.keyboard = pty.fork()
        else:
            self.pid, self.keyboard = os.fork(), -1
        if self.pid == 0:
            self._become(writer)
        os.close(writer)

    def _become(self, writer: int) -> None:
        if not self.terminal:
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0), os.dup2(null, 2)
        os.dup2(writer, 1)
        os.execvp(self.words[0], self.words)

    def interrupt(self) -> None:
        if self.terminal:
            os.write(self.keyboard, b"\x03")
        elif self.way == "kill -INT of its group":
            os.killpg(self.pid, signal.SIGINT)  # it leads the session that _become made
        else:
            os.kill(self.pid, signal.SIGINT)

    def end(self) -> str:
        """Interrupt it when it is ready, and say how it ended."""
        begin = time.monotonic()
        sent = ended = False
        while not ended:
            watched = [self.reader, *([self.keyboard] if self.terminal else [])]
            for ready in select.select(watched, [], [], 0.1)[0]:
                ended |= not self._read(ready)
            if not sent and b"ready" in self.output:
                time.sleep(random.random() * LATEST)
                self.interrupt()
                sent = True
            if time.monotonic() - begin > PATIENCE:
                os.kill(self.pid, signal.SIGKILL)
                self.output += b" hangs"
                break
        _, status = os.waitpid(self.pid, 0)
        os.close(self.reader)
        if self.terminal:
            os.close(self.keyboard)
        code = os.waitstatus_to_exitcode(status)
        how = signal.Signals(-code).name if code < 0 else f"exit {code}"
        return " ".join([how, *self.output.decode(errors="replace").split()[1:]])

    def _read(self, descriptor: int) -> bool:
        """Take in what there is; False where the program will write no more."""
        try:
            text = os.read(descriptor, 65536)
        except OSError:  # the terminal of a program that has ended
            text = b""
        if descriptor == self.reader:
            self.output += text
            return bool(text)
        if not text:
            os.close(self.keyboard)
            self.terminal = False
        return True


def ends(command: Sequence[object], way: str, rounds: int) -> Counter[str]:
    return Counter(Program(command, way).end() for _ in range(rounds))


def text(found: Counter[str]) -> str:
    return ", ".join(f"{count} × {how}" for how, count in found.most_common())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="five rounds of each")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--only", help="one program, by name")
    parser.add_argument("--python", default=str(PYTHON), help="the interpreter")
    arguments = parser.parse_args()
    rounds = 5 if arguments.quick else arguments.rounds
    recordings = Recordings()
    rows, raw = [], {}
    for script in sorted((BENCH / "interrupts").glob(f"{arguments.only or '*'}.py")):
        for way in WAYS:
            plain = ends([arguments.python, script], way, rounds)
            recorded = ends([*recordings.command(), arguments.python, script], way, rounds)
            same = sum(count for how, count in recorded.items() if how in plain)
            what = f"{script.stem}, {way}"
            raw[what] = {"plain": dict(plain), "recorded": dict(recorded)}
            rows.append(Row(what, f"{same} of {rounds} as without: {text(plain)}", "all", same == rounds))
            if same < rounds:
                rows[-1].figure += f"; with hightide {text(recorded)}"
            print(f"  {what}: {rows[-1].figure}", file=sys.stderr, flush=True)
    publish("interrupts", rows, raw)
    return exit_code(rows)


if __name__ == "__main__":
    sys.exit(main())
