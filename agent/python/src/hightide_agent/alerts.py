"""Alerts that the program asks for: the engine watches, and a thread here calls back.

    ask ─▶ `alert` record ─▶ engine: compares each reading ─▶ count in the channel ─▶ callback(value)

The thread is not one of threading's: nobody waits for it. It looks at a few words every PERIOD.
"""

from __future__ import annotations

import _thread
import sys
from time import sleep

from . import channel as channels
from .channel import monotonic_ns

TYPE_CHECKING = False  # for type checkers only: importing typing takes longer than all the rest of the start
if TYPE_CHECKING:
    from typing import Callable, Optional

    from .agent import Agent

    Callback = Callable[[int], object]

PERIOD = 0.05  # seconds
PATIENCE_NS = 2_000_000_000  # that the engine is given to answer


class Alerts:
    """Those of one process."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._forget()
        agent.on_renew.append(self._forget)
        agent.at_end.append(self._look)  # of one that sounded in the last moment

    def _forget(self) -> None:
        """At the start, and in a forked child: its parent asked, and is told."""
        self._lock = _thread.RLock()
        self._asked: list[tuple[str, Callback]] = []
        self._seen: dict[int, int] = {}
        self._running = False

    def ask(self, text: str, callback: Callback) -> Optional[bool]:
        """Have the engine watch: whether it does, None where it does not answer. Calls back with what passed the limit.

        Raises:
            ValueError: there are too many.
        """
        channel = self.agent.ready()
        if channel is None:
            return None
        with self._lock:
            number = len(self._asked)
            if number >= channels.ALERTS:
                raise ValueError("a process may ask for %d alerts" % channels.ALERTS)
            self._asked.append((text, callback))
        self.agent.record({"type": "alert", "id": number, "text": text})
        until = monotonic_ns() + PATIENCE_NS
        while channel.alert_state(number) == 0:
            if monotonic_ns() > until:
                return None
            sleep(0.005)
        if channel.alert_state(number) == channels.ALERT_REFUSED:
            return False
        with self._lock:
            starts, self._running = not self._running, True
        if starts:
            _thread.start_new_thread(self._run, (channel,))
        return True

    def _run(self, channel: channels.Channel) -> None:
        while channel is self.agent.channel:
            self._look()
            sleep(PERIOD)

    def _look(self) -> None:
        channel = self.agent.channel
        if channel is None:
            return
        for number, (text, callback) in enumerate(self._asked):
            count = channel.alert_count(number)
            if count != self._seen.get(number, 0):
                self._seen[number] = count
                try:
                    callback(channel.alert_value(number))
                except Exception as error:
                    self.agent.log("the callback of alert %s raised" % text, error)
                    sys.stderr.write(
                        "hightide: the callback of alert %s raised %s: %s\n" % (text, type(error).__name__, error)
                    )
