"""Whether and by which engine this process is recorded.

    init ─▶ under `hightide run`: that run          else: `hightide attach` to this very process, detached
    step, alert ─▶ the agent in this process ─▶ channel ─▶ the engine

What goes wrong is one line on standard error; the program goes on, unrecorded where it must.
"""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Optional

from . import _engine

recorder: Any = None  # hightide_agent.spans.Spans, or None: nothing records
known = False  # whether `recorder` is up to date
_began: Optional[_engine.Attached] = None  # the engine that init started
latest = ""  # the run that init began last
_latest_folder = ""  # and the folder of recordings that it is in, where init was given one
_asked = False  # init was called
_stopped = False  # stop was, and init not since: the agent is there, and nobody listens


def look() -> Any:
    """Find the recorder of spans, once."""
    global recorder, known
    agent = _engine.agent()
    recorder = agent.spans() if agent is not None else None
    known = True
    return recorder


def init(
    name: str = "", tags: Optional[Mapping[str, object]] = None, interval: Optional[float] = None, folder: str = ""
) -> Optional[str]:
    """Have this process and its children recorded; the id of the run, None where that cannot be.

    Under `hightide run` (or imagine, or attach) it is that run, which gets the name and the tags unless its command
    line gave them. Otherwise an engine is started beside this process; it records until the process ends, or stop(),
    and reads every `interval` seconds, 0.1 where that is not given. The recording goes into `folder`, as with
    --data-dir; where that is not given, into $HIGHTIDE_DATA or the user's own.

    Raises:
        TypeError: tags is not a mapping, or interval is not a number.
        ValueError: interval is not above 0.
    """
    global _asked, _began, _stopped, latest, _latest_folder
    if tags is not None and not isinstance(tags, Mapping):
        raise TypeError(f"tags maps names to values, as {{'model': 'bert'}}; it is not a {type(tags).__name__}")
    if interval is not None and not hasattr(interval, "__float__"):
        raise TypeError(f"interval is a number of seconds, as 0.5, not {interval!r}")
    if interval is not None and not interval > 0:
        raise ValueError(f"interval is a number of seconds above 0, not {interval!r}")
    name = str(name)
    texts = {str(key): str(value) for key, value in (tags or {}).items()}
    if _began is not None and gone():
        _engine.say(f"the engine of {_began.run} is gone; what it recorded is kept, and a new run begins")
        _began, _asked, _stopped = None, False, True
    if recorded() or _began is not None:
        run = latest if _began is not None else os.environ.get("HIGHTIDE_RUN_ID", "")
        if _asked:
            _engine.say(f"init() was called before: this process is recorded as {run}")
        if recorded():
            _engine.agent().name_run(name, texts)
    else:
        _began = _engine.attach(name, texts, interval, os.fspath(folder))
        if _began is None:
            return None
        _latest_folder = _began.data if folder else ""
        run = _began.run
        _stopped = False
    _asked, latest = True, run
    look()
    return run


def recorded() -> bool:
    """Whether this process is recorded, and tells of itself."""
    agent = _engine.agent()
    return not _stopped and agent is not None and agent.agent() is not None


def gone() -> bool:
    """Whether the engine that init() began has ended by itself, or was killed."""
    return _began is not None and _began.by == os.getpid() and not _engine.alive(_began.pid)


def stop() -> None:
    """End the recording that init() began, and wait until it is complete. One begun by a command ends with it."""
    global _began, _asked, _stopped, known, recorder
    if _began is not None and _began.by != os.getpid():
        _engine.say("stop() changes nothing in a forked child: its parent's recording goes on")
        return
    if _began is None:
        if recorded():
            _engine.say("stop() changes nothing: this program runs under hightide, and is recorded to its end")
        return
    lost = gone()
    began, _began = _began, None
    if lost:
        _engine.say(f"the engine of {began.run} is gone; what it recorded is kept")
    else:
        wait_until_kept()
    _asked, _stopped, recorder, known = False, True, None, True
    began.stop()


def end(run: str) -> None:
    """Complete a recording that init() began, and say it in one line."""
    if latest != run:  # another was begun since
        return
    lost = gone()
    stop()
    if lost:  # what it was told last comes into the recording once this process has ended
        return
    where = f" --data-dir {shlex.quote(_latest_folder)}" if _latest_folder else ""
    try:
        verdict = _engine.ask_json("report", run, data=_latest_folder)["headline"]["verdict"]
        _engine.say(f"{verdict} (hightide report {run}{where})")
    except (_engine.Failed, OSError, KeyError, ValueError) as error:
        _engine.say(f"recorded as {run}, and cannot be read: {error}")


def folder_of(run: str) -> str:
    """The folder of recordings that init() was given for this run; empty: the one that commands take by themselves."""
    return _latest_folder if run == latest else ""


def step() -> None:
    """Say that a step ends here, in a loop without a framework's optimizer. Growth is then known per step."""
    agent = _engine.agent()
    if agent is not None and not _stopped and not agent.step():
        _engine.say_once("step() is ignored: an optimizer's steps are the steps of this run")


@dataclass(frozen=True)
class Alert:
    """A limit that was passed.

    Attributes:
        limit: as it was given.
        value: what passed it: bytes, or what else the limit is in.
    """

    limit: str
    value: int

    def __str__(self) -> str:
        return f"{self.limit}: it is {self.value}"


def alert(limit: str, callback: Optional[Callable[[Alert], object]] = None) -> bool:
    """Have the engine watch a limit, as "rss > 2GiB" or "rss > 50MiB/step". Return whether it is watched.

    Args:
        limit: as `hightide run --alert` takes it.
        callback: called with an Alert, on a thread of its own, each time the limit is passed anew. Absent: one line on
            standard error.
    Raises:
        ValueError: no limit is written like that. The engine knows that, so it is asked where this program is recorded.
        TypeError: the callback cannot be called.
    """
    if callback is not None and not callable(callback):
        raise TypeError(f"callback is called with an Alert; {callback!r} cannot be called")
    agent = _engine.agent()
    alerts = agent.alerts() if agent is not None and recorded() else None
    if alerts is None:
        _engine.say(f"alert {limit} is not watched: this program is not recorded")
        return False

    def sounded(value: int) -> None:
        found = Alert(limit, value)
        if callback is None:
            _engine.say(f"alert {found}")
        else:
            callback(found)

    taken = alerts.ask(limit, sounded)
    if taken is None:
        _engine.say(f"alert {limit} is not watched: the engine does not answer")
    elif not taken:
        raise ValueError(
            f"{limit!r} is not a limit that hightide can watch; write it as 'rss > 2GiB' or 'rss > 50MiB/step'"
        )
    return bool(taken)


def here() -> Dict[str, str]:
    """The run that records this process, as options of a command: which data directory, which run. Empty: none does."""
    run, out = os.environ.get("HIGHTIDE_RUN_ID", ""), os.environ.get("HIGHTIDE_OUT", "")
    if not run or not recorded():
        return {}
    data = os.path.dirname(os.path.dirname(out)) if out else ""
    return {"run": run, "data": data}


def wait_until_kept(patience: float = 5.0) -> None:
    """Wait until what this process told is in the recording."""
    agent = _engine.agent()
    if agent is not None and recorded() and not agent.kept(patience):
        sys.stderr.flush()
        _engine.say("the engine does not answer: what follows is not in the recording yet")
