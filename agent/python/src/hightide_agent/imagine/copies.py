"""One start for many trials. Up to its first use of CUDA a program does the same whatever the GPU, the allocator's
setting, and what is switched on at a module's first call. There this process forks once for each trial, and ends itself
when all copies have.

    start, imports, model on the host ─▶ torch's start of CUDA ─▶ fork ─▶ copy: its own variables, sandbox, output
    an LLM server's, its arguments    ─▶ its engine's settings ─┘      └─ … two at a time, each status a fact here

What cannot be forked (other threads, an event loop, CUDA already touched from C) is not: this process then ends there,
and says why. Nor is one that has asked about its GPU, where a copy is to have another one.
Nor is a copy that is to have another setting of the allocator than one that the program made: which holds is not known.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import sys
from typing import Any, Callable, Dict, Optional, Set

from ..agent import Agent
from .device import Device

_wanted: Optional[Dict[str, Any]] = None
_began: Dict[str, Optional[str]] = {}
"""The copies' variables, as they were at the start of the process."""
_fork: Optional[Callable[[bool], None]] = None
"""Forks this process; none: it is not to be, or is a copy."""

SETTERS = "_accelerator_setAllocatorSettings", "_cuda_cudaCachingAllocator_set_allocator_settings"


def begin() -> None:
    """At the start of the process: take the request, so that no child of the program has it too."""
    global _wanted
    text = os.environ.pop("HIGHTIDE_IMAGINE_COPIES", "")
    _wanted = json.loads(text) if text else None
    if _wanted:
        _began.update((name, os.environ.get(name)) for copy in _wanted["copies"] for name in copy["env"])


def asked() -> bool:
    """Whether this process is to be forked for each trial."""
    return _wanted is not None


def here() -> None:
    """Fork here if that was asked for: an LLM server's engine is about to read its settings, and may use CUDA in other
    processes alone. Such a copy ends as the program does, for its engine is to end with it."""
    if _fork is not None:
        _fork(True)


def install(agent: Agent, torch: Any, device: Device, switch: Callable[[], None]) -> None:
    """Wait for torch's start of CUDA, and answer until then what needs no GPU. `switch` applies what is asked for."""
    global _fork
    if _wanted is None:
        return
    wanted, real, changed = _wanted, torch._C, set()  # type: Dict[str, Any], Any, Set[str]
    settings = [name for name in _began if name.endswith("ALLOC_CONF")]
    for setter in SETTERS:
        if hasattr(real, setter):
            setattr(real, setter, _noting(getattr(real, setter), lambda: changed.update(settings)))
    count, start = real._cuda_getDeviceCount, real._cuda_init
    nvml: Any = getattr(torch.cuda, "_device_count_nvml", None)

    def fork(serves: bool) -> None:
        global _fork
        Copies(agent, wanted, changed, device, switch).make(serves)  # returns in the copies alone
        _fork = None
        real._cuda_getDeviceCount, real._cuda_init = count, start
        if nvml is not None:
            torch.cuda._device_count_nvml = nvml

    def init(*args: Any) -> Any:
        fork(False)
        return start(*args)

    _fork = fork

    real._cuda_getDeviceCount = lambda: int(wanted["gpus"])
    real._cuda_init = init
    torch.cuda._device_count_nvml = lambda: -1


def _noting(function: Callable[..., Any], note: Callable[[], None]) -> Callable[..., Any]:
    def noted(*args: Any) -> Any:
        note()
        return function(*args)

    return noted


class Copies:
    """The copies of this process. `changed` are the variables that the program has set by other means."""

    def __init__(
        self, agent: Agent, wanted: Dict[str, Any], changed: Set[str], device: Device, switch: Callable[[], None]
    ) -> None:
        self.agent = agent
        self.wanted = wanted
        self.changed = changed
        self.device = device
        self.switch = switch
        self.running: Dict[int, str] = {}
        self.needless = False
        """The copy has failed that the others need: those that are left need not be made."""

    def make(self, serves: bool) -> None:
        """Fork for each trial and end; returns in each copy."""
        for name in self.wanted.get("imports", ()):  # the program will, and each copy would by itself
            try:
                importlib.import_module(name)
            except Exception as error:
                self.agent.log("imagine: copies import %s themselves" % name, error)
        why = self._hindered()
        if why:
            self.agent.fact("no copies", why)
        else:
            if serves:  # each of its processes would look through all that was imported, and so copy it
                gc.freeze()
            self.changed.update(name for name, value in _began.items() if os.environ.get(name) != value)
            for number, copy in enumerate(self.wanted["copies"]):
                if any(name in self.changed and value != _began[name] for name, value in copy["env"].items()):
                    continue
                while len(self.running) >= self.wanted["at_once"]:
                    self._wait()
                if self.needless:
                    break
                sys.stdout.flush()
                sys.stderr.flush()
                pid = os.fork()
                if pid == 0:
                    self._become(number, copy, serves)
                    return
                self.running[pid] = copy["name"]
            while self.running:
                self._wait()
        self.agent.bye()
        os._exit(0)

    def _hindered(self) -> str:
        threads = os.listdir("/proc/self/task")
        if len(threads) > 1:
            return "%d threads were running at the start of CUDA" % len(threads)
        if "asyncio" in sys.modules and sys.modules["asyncio"]._get_running_loop() is not None:
            return "an event loop was running"
        if os.path.exists(os.environ.get("HIGHTIDE_DEVICE_TABLE", "")) and (self.device.used or self._others()):
            return "the device was used before torch started CUDA"
        return ""

    def _others(self) -> bool:
        """Whether a copy is to have another GPU than this process, which has asked about its own."""
        own = os.environ.get("HIGHTIDE_DEVICE_SPEC")
        return any(copy["env"].get("HIGHTIDE_DEVICE_SPEC", own) != own for copy in self.wanted["copies"])

    def _wait(self) -> None:
        pid, status = os.wait()
        name = self.running.pop(pid, "")
        if name:
            code = os.waitstatus_to_exitcode(status) if hasattr(os, "waitstatus_to_exitcode") else status
            self.agent.fact("copy " + name, code)
            self.needless |= bool(code) and name == self.wanted.get("needs")

    def _become(self, number: int, copy: Dict[str, Any], serves: bool) -> None:
        """Be the copy: its output, its GPU, its variables, its writes; and no end but its own."""
        from .. import control
        from . import sandbox

        output = os.open(copy["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        os.environ.update(copy["env"])
        self.device.renew()
        if sandbox.active is not None:
            os.environ["HIGHTIDE_IMAGINE_SANDBOX"] = "%s-%d" % (sandbox.active.folder, number)
            sandbox.active.move(os.environ["HIGHTIDE_IMAGINE_SANDBOX"])
        self.agent.fact("copy", copy["name"])
        self.switch()
        # At its end the interpreter looks for cycles among all objects, which copies the pages that it shares with
        # the parent. That took more than the training of a small model.
        atexit.register(gc.freeze)
        if serves:
            return

        def now(stop: control.Stop, step: int, reason: str) -> None:
            """End at once: what the others still need is not to be cleared away."""
            stop.agent.record({"type": "stop", "step": step, "reason": reason})
            stop.agent.end()
            sys.stdout.flush()
            os._exit(0)

        control.Stop.now = now  # type: ignore[method-assign, assignment]
