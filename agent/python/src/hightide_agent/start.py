"""Start-up: open the channel, say hello, watch for frameworks. Called by the hook, once a process.

Every millisecond here is paid by each Python process of a run, so nothing is imported that most
of them never need.
"""

from __future__ import annotations

import atexit
import os
import sys

from . import forks
from .agent import Agent

TYPE_CHECKING = False  # for type checkers only: importing typing takes longer than all the rest of the start
if TYPE_CHECKING:
    from typing import Any, Optional

    from .watcher import Watcher

agent: Optional[Agent] = None
watcher: Optional[Watcher] = None


def start() -> None:
    """Begin to observe this process, if hightide runs it. Calling it again does nothing."""
    global agent, watcher
    folder = os.environ.get("HIGHTIDE_CHANNELS")
    if agent is not None or not folder:
        return
    agent = Agent(folder)
    agent.open()
    python_heap = None
    if "HIGHTIDE_TRACEMALLOC" in os.environ:
        from .python_heap import start as start_heap

        python_heap = start_heap(agent)
    if hasattr(os, "register_at_fork"):
        work = forks.work
        os.register_at_fork(before=work.before_fork, after_in_parent=work.after_fork, after_in_child=agent.renew)
    atexit.register(_end)  # first in, last out: the script's own exit handlers run before
    from . import adapters, imports

    imagined = os.environ.get("HIGHTIDE_IMAGINE") == "1"
    if imagined:
        from . import imagine

        imagine.begin(agent)
    training = imports.watch(agent, adapters.ADAPTERS)
    if imports.finder is not None:
        imports.finder.wait("multiprocessing.util", _processes)
    if imagined:
        return  # it is forked for each GPU, which a thread of ours would forbid, and ends once its steps are steady
    from .watcher import Watcher

    watcher = Watcher(agent, training, python_heap)
    watcher.start()


def _end() -> None:
    if agent is None or os.getpid() != agent.pid:
        return
    ending = None
    try:
        if hasattr(sys, "last_value"):
            ending = _ending()
            ending.report(agent)
    except Exception as error:
        agent.log("could not report how the program ended", error)
    agent.end()
    scanned = watcher is not None and watcher.end()
    if scanned and ending is not None and ending.interrupted():
        ending.interrupt_again()


def _processes(util: Any) -> None:
    """A process of multiprocessing prints the exception that ended it, and forgets it. Its last call before that is
    this one, while the exception is on its way; a frame of ours would be in what is printed."""
    leave = util._exit_function

    def _exit_function(*arguments: Any, **named: Any) -> Any:
        error = sys.exc_info()[1]
        if agent is not None and isinstance(error, Exception):
            try:
                _ending().tell(agent, error)
            except Exception as trouble:
                agent.log("could not report how a process ended", trouble)
        return leave(*arguments, **named)

    util._exit_function = _exit_function


def _ending() -> Any:
    """The module that tells how the program ended. One that has no descriptor left to read it with gets ours."""
    try:
        from . import ending
    except OSError:
        from . import resident

        resident.forget()
        from . import ending
    return ending
