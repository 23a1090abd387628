"""Ending the training after the steps that were asked for, by the environment or by the engine."""

from __future__ import annotations

import os
from _thread import get_ident
from typing import Callable

from .agent import Agent


def stopper(agent: Agent) -> Callable[[int], None]:
    """A function to call at each step's end, on the training thread: raises SystemExit(0) when it is time.

    In another thread than the main one that would end only the thread: there the `stop` record alone
    tells the engine, which ends the process after its grace period.
    """
    text = os.environ.get("HIGHTIDE_STEPS", "")
    wanted = int(text) if text.isdigit() else 0
    main = _main_thread()
    stopped = False

    def check(step: int) -> None:
        nonlocal stopped
        channel = agent.channel
        asked = channel.stop_at_step() if channel is not None else 0
        limit = min(n for n in (wanted or asked, asked or wanted)) if wanted or asked else 0
        if not limit or step < limit or stopped:
            return
        stopped = True
        agent.record({"type": "stop", "step": step, "reason": "%d steps were asked for" % limit})
        if get_ident() == main:
            raise SystemExit(0)

    return check


def _main_thread() -> int:
    import threading

    return threading.main_thread().ident or 0
