"""Counters read at an interval, on a thread of our own. Started only where there is something to read.

The thread is not one of threading's: nobody waits for it at exit, and scripts that count threads do
not meet it. It keeps itself below SHARE of a processor by sleeping longer after costly readings.
"""

from __future__ import annotations

import _thread
import os
from time import monotonic_ns, sleep, thread_time_ns
from typing import Callable, Dict, List, Tuple

from .agent import Agent

Reading = Tuple[str, str, str, int]  # series name, unit, device, value
DEFAULT_NS = 100_000_000
SHARE = 0.005  # of one processor


class Sampler:
    """Reads `read` at the interval that the environment or the engine asks for."""

    def __init__(self, agent: Agent, framework: str, read: Callable[[], List[Reading]]) -> None:
        self.agent = agent
        self.framework = framework
        self.read = read
        self.cpu_ns = 0
        self._ids: Dict[Tuple[str, str], int] = {}
        self._pid = -1
        text = os.environ.get("HIGHTIDE_INTERVAL_NS", "")
        self._interval = int(text) if text.isdigit() and int(text) > 0 else DEFAULT_NS

    def start(self) -> None:
        """Start the thread, if this process has none."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._ids = {}
            _thread.start_new_thread(self._run, ())

    def sample(self) -> None:
        """Read once and record."""
        now = monotonic_ns()
        values = []
        for name, unit, device, value in self.read():
            key = (name, device)
            if key not in self._ids:
                self._ids[key] = len(self._ids) + 1
                self.agent.record(
                    {"type": "series", "id": self._ids[key], "name": name, "framework": self.framework, "unit": unit,
                     "device": device}
                )
            values.append((self._ids[key], value))
        channel = self.agent.ready()
        if values and channel is not None:
            channel.counters(values, now)

    def _run(self) -> None:
        failures = 0
        while failures < 3:
            before = thread_time_ns()
            try:
                self.sample()
                failures = 0
            except Exception as error:
                failures += 1
                self.agent.log("could not read counters", error)
            cost = thread_time_ns() - before
            self.agent.cpu_ns += cost
            channel = self.agent.channel
            interval = (channel.interval_ns() if channel is not None else 0) or self._interval
            sleep(max(interval, int(cost / SHARE)) / 1e9)
