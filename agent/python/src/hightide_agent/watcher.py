"""Scans for growing containers where no steps are taken: asked for by the engine when memory grows with time.

    every PERIOD, or LONG_PERIOD: did the engine ask, and does nobody step? ─▶ holders.scan, by the clock

A thread of our own sleeps and looks at one word of the channel. It is not one of threading's: nobody waits for it.
From Python 3.12 a fork warns where there are several threads; so it ends before one if it would be the only reason.
"""

from __future__ import annotations

import _thread
import atexit
import os
import sys
from time import thread_time_ns

from . import imports
from .channel import monotonic_ns
from .forks import work

TYPE_CHECKING = False  # for type checkers only: importing typing takes longer than all the rest of the start
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

    from .agent import Agent
    from .python_heap import PythonHeap
    from .training import Training

PERIOD = 0.25  # seconds
LONG_PERIOD = 2.0  # while steps are taken: each look takes the interpreter from the thread that trains
STEPPING_NS = 5_000_000_000  # since the last step, within which scans are left to the ends of steps
WARNS = sys.version_info >= (3, 12)  # of forks
PATIENCE = 1.0  # seconds that the end of the program, or who holds scans back, waits for one
PATIENCE_AT_END = 10.0  # a scan takes no more than some 30 ms of the processor, which may be busy
RECENT_NS = 30_000_000_000  # a program that was interrupted has ended by then
NS_PER_MINUTE = 60_000_000_000
COST = 300  # times the processor time of a scan go by before the next
COST_RISING = 50  # where memory rises, but for the first few scans

_held_until = 0  # monotonic: no scan begins before


def hold_scans(ns: int) -> None:
    """No scan by the clock begins for so long, and one that goes on has ended, unless it takes longer than PATIENCE.

    What a scan reaches lives until its end. Who watches where the program lets go of something asks for this.
    """
    global _held_until
    _held_until = monotonic_ns() + ns
    work.wait(PATIENCE)


class Watcher:
    """The thread of one process."""

    def __init__(
        self, agent: Agent, training: Callable[[], Optional[Training]], python_heap: Optional[PythonHeap] = None
    ) -> None:
        self.agent = agent
        self._python_heap = python_heap  # None: tracemalloc was not asked for
        self.training = training  # None: no framework is used that has steps or tensors
        self._holders: Any = None
        self._collector: Any = None
        self._file: Any = None  # of the script
        self._stop: Any = None  # a lock that is held while the thread is to run
        self._gone: Any = None  # a lock that is held until the thread is gone
        self._scanned = 0  # when a scan last began
        agent.on_renew.append(self.start)
        if WARNS:
            os.register_at_fork(before=self.rest)  # registered last, it is called before `work` is held

    def start(self) -> None:
        """Begin to watch; in a forked child, or another recording, anew."""
        if self.agent.moving and self._stop is not None:
            self._stop.release()
        self._holders, self._asked, self._steps, self._stepped = None, 0, 0, 0
        self._cost = self._ended = 0  # ns of processor time of the last scan, and when it was over
        self._next_look = 0  # monotonic: no look through the heap before
        self._main, self._is_gone = _thread.get_ident(), True
        self._stop, self._gone = _thread.allocate_lock(), _thread.allocate_lock()
        self._stop.acquire()
        self._gone.acquire()
        try:
            _thread.start_new_thread(self._run, (self._stop, self._gone))
        except RuntimeError as error:  # no more threads are allowed
            self._stop = None
            self.agent.log("could not watch for growth over time", error)

    def rest(self) -> None:
        """Before a fork: end the thread where the program has none of its own."""
        if self._stop is not None and _threads() <= 2:
            self._end_thread(-1)  # it ends at once, or after its scan

    def end(self) -> bool:
        """End the thread as the program ends; whether a scan may have come between its last line and now.

        Python throws a thread that still runs out of whatever it is in: in a framework's C++ that aborts the process.
        """
        self._end_thread(PATIENCE_AT_END)
        return self._scanned != 0 and monotonic_ns() - self._scanned < RECENT_NS

    def _end_thread(self, patience: float = PATIENCE) -> bool:
        """Gives whether it is gone, after so many seconds at most."""
        if self._stop is not None:
            self._stop.release()
            self._stop = None
            self._is_gone = self._gone.acquire(True, patience)
        return self._is_gone

    def _run(self, stop: Any, gone: Any) -> None:
        first, pause = True, PERIOD
        while not stop.acquire(True, pause):
            try:
                with work:
                    pause = LONG_PERIOD if self._stepping(monotonic_ns()) else PERIOD
                    if first:
                        first = False
                        self._watch_collector()
                    imports.look_again()
                    if self._python_heap is not None:
                        self._python_heap.tick()
                        pause = PERIOD
                    self._look()
            except Exception as error:
                self.agent.log("could not look for growing containers", error)
        gone.release()

    def _watch_collector(self) -> None:
        """From here on; what ends sooner has no garbage worth a word. Once for a process and its forks."""
        if self._collector is None:
            from .collector import Collector

            self._collector = Collector(self.agent, self._device)
            self._collector.install()

    def _device(self) -> Any:
        training = self.training()
        return None if training is None else training.tracker.device

    def _look(self) -> None:
        channel = self.agent.channel
        now = monotonic_ns()
        if channel is None or channel.scan_seq() == self._asked or now < _held_until or self._too_soon(now):
            return
        training = self.training()
        if self._stepping(now):
            self._asked = channel.scan_seq()
            return
        if _importing(sys._current_frames().get(self._main)):
            return  # that takes memory, but makes no container of the program grow
        self._asked = channel.scan_seq()
        self._scan(training, now)

    def _look_last(self) -> None:
        """The program ends: what grew until now is seen a last time, where a short run was seen too seldom so far."""
        now = monotonic_ns()
        if self._holders is None or now < _held_until or self._stepping(now):
            return
        self.agent.ended = now
        variables = sys.modules["__main__"].__dict__
        hidden = self._file and "__file__" not in variables
        try:
            if hidden:  # Python takes it away as a script ends, and the script's lines are found by it
                variables["__file__"] = self._file
            if self._end_thread():
                self._scan(self.training(), now, last=True)
        except Exception as error:
            self.agent.log("could not look for growing containers", error)
        finally:
            if hidden:
                variables.pop("__file__", None)

    def _stepping(self, now: int) -> bool:
        """Whether a step has ended within STEPPING_NS, as far as was seen."""
        training = self.training()
        if training is None:
            return False
        steps = training.tracker.steps_now()
        if steps != self._steps:
            self._steps, self._stepped = steps, now
        return self._stepped != 0 and now - self._stepped < STEPPING_NS

    def _scan(self, training: Optional[Training], now: int, last: bool = False) -> None:
        self._scanned = monotonic_ns()
        if not last:  # once more after what was imported meanwhile, whose handlers tear down what it has
            atexit.unregister(self._look_last)
            atexit.register(self._look_last)
            self._file = sys.modules["__main__"].__dict__.get("__file__")
        if self._holders is None:
            from .holders import Holders

            self._holders = Holders(self.agent, self._device, over_time=True)
        if training is not None:
            self._holders.tensors = training.holders.tensors
        me = _thread.get_ident()
        frames = [frame for thread, frame in sys._current_frames().items() if thread != me]
        began, costs = thread_time_ns(), self._holders.costs
        costs.asked()
        looks = costs.looks
        self._holders.scan(now, frames, NS_PER_MINUTE, now >= self._next_look, last)
        looked = costs.looks - looks  # a look through the heap takes far longer than the scan that it is part of
        self._ended, self._cost = monotonic_ns(), thread_time_ns() - began - looked
        if looked:
            self._next_look = self._ended + COST_RISING * looked

    def _too_soon(self, now: int) -> bool:
        """Whether the last scan's cost is still felt."""
        if not self._cost or now > self._ended + COST * self._cost:
            return False
        costs = self._holders.costs
        if not costs.rises():
            return True
        return not costs.few_scans() and now < self._ended + COST_RISING * self._cost


def _importing(frame: Any) -> bool:
    """Whether a thread imports a library: its innermost code that is the program's waits for that."""
    from .places import is_users

    while frame is not None and not is_users(frame.f_code, frame.f_globals):
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _threads() -> int:
    """How many this process has, ours with them."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 99
