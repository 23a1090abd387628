"""The engine, seen from Python: its program, the agent that it put into this process, and how it is asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from time import monotonic, sleep
from typing import Any, Dict, List, Mapping, Optional, Set, Tuple

_said: Set[str] = set()
_old = False


def say(text: str) -> None:
    """One line for the person who runs the program."""
    try:
        sys.stderr.write(f"hightide: {text}\n")
    except (OSError, ValueError, AttributeError):  # closed, or None as under pythonw
        pass


def say_once(text: str) -> None:
    """The same line only once."""
    if text not in _said:
        _said.add(text)
        say(text)


def agent() -> Any:
    """The module hightide_agent.sdk of the engine that records this process; None: none does."""
    global _old
    if "hightide_agent" not in sys.modules or _old:
        return None
    try:
        from hightide_agent import sdk
    except ImportError:
        _old = True
        say_once("the program hightide that records this process is older than the package: it takes no spans")
        return None
    return sdk


def imaginary() -> bool:
    """Whether this process is on imaginary GPUs itself."""
    return os.environ.get("HIGHTIDE_IMAGINE") == "1"


class Failed(RuntimeError):
    """The program hightide said that it cannot; its words."""


def ask(*arguments: str, data: str = "") -> str:
    """Run the program and return what it prints.

    Raises:
        FileNotFoundError: it is not installed with this package.
        Failed: it ended with an error.
    """
    import hightide

    command = [hightide.binary(), *arguments]
    if data:
        command += ["--data-dir", data]
    code, out, err = apart(command)
    if code:
        raise Failed(words(err) or f"hightide {command[1]} ended with {code}")
    return out


def words(err: str) -> str:
    """The sentence in which the program said what went wrong."""
    return err.strip().rpartition("hightide: ")[2].partition("\n")[0]


def flags(known: Mapping[str, str], given: Mapping[str, Any]) -> List[str]:
    """Settings as flags of a command, by the names that the module _settings has.

    Raises:
        ValueError: there is no such setting.
    """
    words: List[str] = []
    for name, value in given.items():
        if name not in known:
            raise ValueError(f"there is no setting {name}; there are {', '.join(known)}")
        values = [f"{key}={one}" for key, one in value.items()] if isinstance(value, Mapping) else value
        for one in values if isinstance(values, (list, tuple)) else [values]:
            if one is True:
                words.append(known[name])
            elif one is not None and one != "":
                words.append(f"{known[name]}={'false' if one is False else one}")
    return words


def apart(command: List[str], more: Optional[Dict[str, str]] = None, given: str = "") -> Tuple[int, str, str]:
    """Run a command that is not part of the recorded tree of processes, on a text; its exit code, and what it wrote."""
    if not os.path.isfile(command[0]):
        raise FileNotFoundError(f"there is no program {command[0]}")
    process = subprocess.Popen(
        command, env={**outside(), **(more or {})}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace",
    )  # fmt: skip
    with process:
        try:
            leave = getattr(agent(), "aside", None)  # it may be seen, and end, before its mark is
            if leave is not None:
                leave(process.pid)
            out, err = process.communicate(given)
        except BaseException:
            process.kill()
            raise
    return process.returncode, out, err


def ask_json(*arguments: str, data: str = "") -> Any:
    """What the program prints as JSON."""
    return json.loads(ask(*arguments, "--json", data=data))


def outside() -> Dict[str, str]:
    """The environment without what makes a process part of a run: what we start ourselves is not part of it."""
    env = {"HIGHTIDE_ASIDE": "1"}  # the first, where the engine looks for it: it counts no such process
    env.update((key, value) for key, value in os.environ.items() if not key.startswith("HIGHTIDE_") or key in _OURS)
    for variable, mine in (("PYTHONPATH", _hook()), ("LD_PRELOAD", os.environ.get("HIGHTIDE_HEAP"))):
        places = [place for place in env.get(variable, "").split(":") if place and place != mine]
        env.pop(variable, None)
        if places:
            env[variable] = ":".join(places)
    return env


_OURS = frozenset(("HIGHTIDE_DATA", "HIGHTIDE_BINARY", "HIGHTIDE_CACHE"))


def _hook() -> Optional[str]:
    return os.environ.get("HIGHTIDE_AGENT_PATH")


class Attached:
    """An engine that was started for this process, and what it was told to set here."""

    def __init__(self, answer: Dict[str, Any]) -> None:
        self.by = os.getpid()
        self.run = str(answer["run"])
        self.data = os.path.dirname(os.path.dirname(str(answer["folder"])))
        """the folder of recordings that it is in"""
        self.channels = str(answer["channels"])
        self.pid = int(answer["engine_pid"])
        env: Dict[str, str] = answer.get("env") or {}
        before = {name: os.environ.get(name) for name in env}
        self.inside = _bring_in(str(answer["agent"]), env, str(answer.get("heap") or ""))
        self._set = {name: (value, os.environ.get(name)) for name, value in before.items()}

    def stop(self) -> None:
        """Have it complete the recording, and wait for that; then the environment is what it was."""
        for name, (before, mine) in self._set.items():
            if os.environ.get(name) == mine:
                if before is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = before
        try:
            with open(os.path.join(self.channels, "stop"), "wb"):
                pass
        except OSError:  # it is gone already
            return
        until = monotonic() + PATIENCE
        while alive(self.pid):
            if monotonic() > until:
                say(f"the engine of {self.run} takes long to end; the recording will be complete once it has")
                return
            sleep(0.01)


ENDING = 5.0  # seconds that threads of a killed engine are given to end
PATIENCE = 60.0  # seconds that an engine is given to begin, and to end


def alive(pid: int) -> bool:
    """Whether a process runs, and does not only wait for its parent.

    The first thread of one that was killed may have ended before the others, which hold its files and locks until then.
    """
    until = monotonic() + ENDING
    try:
        while True:
            with open(f"/proc/{pid}/stat", "rb") as stat:
                if stat.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X"):
                    return True
            if len(os.listdir(f"/proc/{pid}/task")) <= 1 or monotonic() > until:
                return False
            sleep(0.001)
    except (OSError, IndexError):
        return False


def _bring_in(agent: str, env: Dict[str, str], heap: str) -> bool:
    """Start the agent in this process; False: it is recorded from outside only."""
    sys.path.insert(0, agent)
    try:
        from hightide_agent import late

        return bool(late.begin(env, heap, "hightide.init"))
    except ImportError:
        return False
    finally:
        if agent in sys.path:
            sys.path.remove(agent)


def attach(name: str, tags: Dict[str, str], interval: Optional[float] = None, folder: str = "") -> Optional[Attached]:
    """Start an engine for this process; None, and one line, where that cannot be."""
    import hightide

    try:
        every = [] if interval is None else ["--interval", f"{max(interval, 0.001) * 1e3:.0f}ms"]
        every += ["--data-dir", os.path.abspath(folder)] if folder else []
        answer = _begin([hightide.binary(), "attach", str(os.getpid()), "--detach", *every, *options(name, tags)])
    except (OSError, ValueError) as error:
        say(f"this program is not recorded: {error}")
        return None
    if "error" in answer:
        say(f"this program is not recorded: {answer['error']}")
        return None
    found = Attached(answer)
    if folder and os.path.realpath(folder) != os.path.realpath(found.data):
        say(f"{folder} cannot be written to: {found.run} is recorded into {found.data}")
    if not found.inside:
        say(f"this program is recorded from outside only, as {found.run}: its agent could not be started")
    return found


def _begin(command: List[str]) -> Dict[str, Any]:
    """What an engine says once it records.

    Raises:
        OSError: it cannot be started.
        ValueError: it says nothing.
    """
    import select

    reading, writing = os.pipe()
    try:
        done = subprocess.run(
            [*command, "--ready-fd", str(writing)], pass_fds=[writing], env=outside(), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", check=False,
        )  # fmt: skip
    finally:
        os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        ready, _, _ = select.select([pipe], [], [], PATIENCE)
        line = pipe.readline() if ready else b""
    if not line:
        raise ValueError(words(done.stderr) or f"hightide attach said nothing, and ended with {done.returncode}")
    answer: Dict[str, Any] = json.loads(line)
    return answer


def options(name: str, tags: Dict[str, str]) -> List[str]:
    """A run's name and tags as a command takes them."""
    found = ["--name", name] if name else []
    for key, value in tags.items():
        found += ["--tag", f"{key}={value}"]
    return found
