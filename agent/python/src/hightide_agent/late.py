"""Coming into a program that runs already: by hightide.init() in it, or by sys.remote_exec from outside.

    begin(env, heap) ─▶ the environment, for children ─▶ start ─▶ the heap library, which writes the slots of malloc

What the program holds by then is not known by line. Frameworks that are imported are hooked as they are; one that is
being imported at this moment, once it is (imports.py).
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # for type checkers only: importing typing takes longer than all the rest of the start
if TYPE_CHECKING:
    from .agent import Agent

_PATHS = ("PYTHONPATH", "LD_PRELOAD", "LD_LIBRARY_PATH")  # what is there stays, behind ours


def begin(env: dict[str, str], heap: str = "", how: str = "") -> bool:
    """Record this process from now on; True where it is. Never raises.

    Args:
        env: the variables of the recording, as `hightide attach --ready-fd` tells them. They are set for children, too.
        heap: the heap library; "": allocations are not looked at.
        how: what brought us in, for the report.
    """
    try:
        _set(env)
        from . import start

        agent = start.agent
        if agent is None:
            start.start()
            agent = start.agent
        elif agent.folder != env["HIGHTIDE_CHANNELS"] or agent.channel is None:
            agent.move(env["HIGHTIDE_CHANNELS"])
        if agent is None or agent.channel is None:
            return False
        if how:
            agent.fact("brought_in", how)
        if heap:
            _load(agent, heap)
    except Exception:  # the program goes on, recorded from outside
        return False
    return True


def _set(env: dict[str, str]) -> None:
    for name, value in env.items():
        before = os.environ.get(name, "") if name in _PATHS else ""
        if before == value or before.startswith(value + ":"):
            continue
        os.environ[name] = value + ":" + before if before else value


def _load(agent: Agent, heap: str) -> None:
    """Load the library, or have one that is there go on in this recording."""
    try:
        import ctypes

        move = getattr(ctypes.CDLL(None), "hightide_heap_move", None)
        if move is not None:
            if not move(os.fsencode(agent.folder)):
                agent.log("allocations are not seen: the heap library was switched off when the program began")
            return
        os.environ["HIGHTIDE_HEAP_LATE"] = "1"
        try:
            ctypes.CDLL(heap, mode=ctypes.RTLD_GLOBAL)
        finally:
            del os.environ["HIGHTIDE_HEAP_LATE"]
    except (ImportError, OSError) as error:
        agent.log("allocations are not seen: the heap library could not be loaded", error)
