"""Files that a framework writes about its allocator: when they are wanted, and how they get into the recording.

HIGHTIDE_SNAPSHOT_ON, the engine's requests ─▶ Wanted ─▶ the framework's own writer ─▶ write ─▶ `snapshot` records
"""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, Any, Callable, Iterable, Optional, Set, TypeVar

from .tracker import NEVER

if TYPE_CHECKING:
    from .agent import Agent

Told = TypeVar("Told")


class Wanted:
    """When snapshots are to be written."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        wanted = os.environ.get("HIGHTIDE_SNAPSHOT_ON", "oom").split(",")
        self.never = "never" in wanted
        self.at_exit = "exit" in wanted
        self.at_steps: Set[int] = {int(w[5:]) for w in wanted if w.startswith("step:") and w[5:].isdigit()}
        self._asked = 0

    def reason(self, step: int) -> str:
        """Why one is to be written at the end of this step: "step-3", "asked-1"; "": none is."""
        channel = self.agent.channel
        asked, before = channel.snapshot_seq() if channel is not None else 0, self._asked
        self._asked = asked
        if step in self.at_steps:
            return "step-%d" % step
        return "asked-%d" % asked if asked != before else ""

    def next(self, step: int, besides: Iterable[int] = ()) -> int:
        """The step after this one at which one is wanted, or that is among the others."""
        return min((s for s in (*besides, *self.at_steps) if s > step), default=NEVER)


def write(
    agent: Agent, reason: str, ending: str, form: str, dump: Callable[[IO[bytes]], Told],
    beside: Optional[Callable[[str], Any]] = None,
) -> Optional[Told]:  # fmt: skip
    """Write a file into HIGHTIDE_OUT and say so; what `dump` returned, None where there is no file. Never raises.

    Args:
        reason: why it is written, as "step-3".
        ending: of the file's name, as ".pickle".
        form: its format, as internal/format/formats.go names it.
        beside: called with the path before the engine can see the file, to write another one beside it.
    """
    try:
        folder = os.environ.get("HIGHTIDE_OUT")
        if not folder:
            return None
        rank = os.environ.get("RANK", "0")
        path = os.path.join(folder, "%s-rank%s-%d%s" % (reason, rank, os.getpid(), ending))
        descriptor = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            told = dump(file)
        if beside is not None:
            beside(path)
        os.rename(path + ".new", path)
        agent.record({"type": "snapshot", "path": path, "format": form, "reason": reason.partition("-")[0]})
        return told
    except Exception as error:
        agent.log("could not write an allocator snapshot", error)
        return None
