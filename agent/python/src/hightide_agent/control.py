"""Ending the training after the steps that were asked for, by the environment or by the engine."""

from __future__ import annotations

import os
from _thread import get_ident
from typing import Callable, Optional

from .agent import Agent
from .tracker import NEVER


def stopper(agent: Agent) -> Callable[[int], Optional[int]]:
    """A function to call at each step's end, on the training thread: raises SystemExit(0) when it is time.

    In another thread than the main one that would end only the thread: there the `stop` record alone
    tells the engine, which ends the process after its grace period.
    """
    text = os.environ.get("HIGHTIDE_STEPS", "")
    wanted = int(text) if text.isdigit() else 0
    stop = Stop(agent)
    stopped = False

    def check(step: int) -> Optional[int]:
        nonlocal stopped
        channel = agent.channel
        asked = channel.stop_at_step() if channel is not None else 0
        limit = min(n for n in (wanted or asked, asked or wanted)) if wanted or asked else 0
        if not limit or step < limit or stopped:
            return limit if limit > step else NEVER
        stopped = True
        stop.now(step, "%d steps were asked for" % limit)
        return NEVER

    return check


class Stop:
    """Ends the training in good order."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._main = _main_thread()

    def now(self, step: int, reason: str) -> None:
        """Say so and raise SystemExit(0), on the main thread; on another one the engine ends the process."""
        self.agent.record({"type": "stop", "step": step, "reason": reason})
        if get_ident() == self._main:
            raise SystemExit(0)


def _main_thread() -> int:
    import threading

    return threading.main_thread().ident or 0
