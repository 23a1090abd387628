"""What an LLM server says of its start, whichever engine it is: one Serving for each process.

    adapter of the engine ─▶ step: what the start does now, a span  tell: its figures, from its own objects
                             taken: this process has all its memory ─▶ peak and breakdown, before a parent kills it
                             answers: requests can come ─▶ the end of an imagined run

Every telling is a `serving` record with all that this process knows; the engine of hightide puts processes together.
"""

from __future__ import annotations

import functools
import os
import socket
import sys
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional

from . import control
from .load import OPENAI, Load, asked

if TYPE_CHECKING:
    from .spans import Spans
    from .training import Training

    Watch = Callable[[str, Callable[[Any], None]], None]

READY = "ready"
OPEN = "?"  # ends the name of a setting that is given only where the program gives none
BESIDE = "HIGHTIDE_IMAGINE_BESIDE"  # set where this start is not the one that is recorded
ENGINE = "engine:"  # begins a switch that gives the engine another setting, as engine:max_model_len=4096


class Serving:
    """The server, or the part of one, that is this process."""

    def __init__(self, training: Training, engine: str, version: str, spans: Callable[[], Optional[Spans]]) -> None:
        self.training = training
        self.agent = training.agent
        self.facts: Dict[str, Any] = {"engine": engine, "version": version}
        self._asked = False  # whether this process trains
        self._server: Any = None  # uvicorn's
        self.way = OPENAI  # by which it takes requests that are played
        self.first: Optional[Load] = None  # what it is asked where nothing is played, as it takes memory for that
        self._load = {"load_blocks": 0, "load_running": 0}
        self._told: Dict[str, int] = {}
        self._peak = 0  # bytes allocated at most when the peak was last told
        self._inside = 0
        self._steps: List[str] = []  # of the start, those that have begun
        self._spans = spans
        self.agent.on_renew.append(self._forget)

    def tell(self, **facts: Any) -> None:
        """Add figures, which replace those of the same name. None: not known, and left out."""
        self.facts.update({name: fact for name, fact in facts.items() if fact is not None})
        self.agent.record({"type": "serving", **self.facts})

    def taken(self) -> None:
        """All memory of this process is taken: say what its peak was made of."""
        for report in self.training.at_ready:
            report()

    def computed(self, device: Any) -> None:
        """A batch was computed on this device: what it took may be a new peak, which is told from 1 MiB on."""
        allocated = sys.modules["torch"].cuda.max_memory_allocated(device)
        if allocated > self._peak + (1 << 20):
            self._peak = allocated
            self.taken()

    def loaded(self, blocks: int, running: int, preempted: Optional[int]) -> None:
        """What requests take of the KV cache now, and how many lost theirs since the last call; None: not known."""
        most = self._load
        most["load_blocks"] = max(most["load_blocks"], blocks)
        most["load_running"] = max(most["load_running"], running)
        if preempted is not None:
            most["load_preemptions"] = most.get("load_preemptions", 0) + preempted

    def tell_load(self) -> None:
        """Tell the most of it, where that is news. To be called before the last request's answer leaves."""
        if self._load != self._told:
            self._told = dict(self._load)
            self.tell(**self._load)

    def requests(self) -> None:
        """This process does nothing more but answer requests."""
        for told in self.training.at_requests:
            told()

    def answers(self, step: int = 0) -> bool:
        """Requests can come: say so; whether the program is to end here."""
        self.tell(answers=True)
        if os.environ.get("HIGHTIDE_IMAGINE_STEPS") == "0":
            return False
        self.agent.record({"type": "stop", "step": step, "reason": READY})
        return True

    def method(self, owner: Any, name: str, after: Callable[..., None], step: str = "") -> None:
        """Call after(this, result, *arguments) at the return of a method, which is a step of the start.

        Where the method raises, the result is its exception, and what the peak was made of is told. An owner without
        the method is of another version. A step is a span of the recording, in place of a training's phases.
        """
        original = owner.__dict__.get(name)
        if original is None:
            return

        @functools.wraps(original)
        def method(*arguments: Any, **named: Any) -> Any:
            if step:
                self._begun(step)
            spans = self._spans() if step else None
            stay = spans.enter(step) if spans is not None else ()
            try:
                result = original(*arguments, **named)
            except BaseException as error:
                self.guarded(after, arguments[0], error, *arguments[1:])
                self.guarded(self.taken)  # a forked process may end without a call of ours
                raise
            finally:
                if spans is not None:
                    spans.leave(stay)
                if step:
                    self._steps.pop()
            if step and self._steps:  # it was a part of another
                self.guarded(self.tell, at=self._steps[-1])
            self.guarded(after, arguments[0], result, *arguments[1:])
            return result

        setattr(owner, name, method)

    def _begun(self, step: str) -> None:
        """A step of the start begins. Whether the process trains is asked once, as all its objects are looked at."""
        if not self._asked:
            self._asked = True
            self.training.tracker.told = self.training.trains()
        self._steps.append(step)
        self.guarded(self.tell, at=step)

    def within(self, step: str) -> bool:
        """Whether a step of the start has begun and not ended."""
        return step in self._steps

    def settings(self, arguments: Any, names: Optional[Dict[str, str]] = None) -> None:
        """Give the engine's arguments the values that were asked for, which tells what another setting would do.
        names: those of the engine for vLLM's; a setting that is not among them it does not have."""
        for switch in os.environ.get("HIGHTIDE_IMAGINE_SWITCH", "").split(","):
            name, given, text = switch[len(ENGINE) :].partition("=")
            if not switch.startswith(ENGINE) or not given:
                continue
            own = name.rstrip(OPEN) if names is None else names.get(name.rstrip(OPEN), "")
            known = hasattr(arguments, own)
            if name.endswith(OPEN) and getattr(arguments, own, None) is not None:
                continue
            if known:
                value = _value(text)
                setattr(arguments, own, [value] if isinstance(getattr(arguments, own), list) else value)
            self.agent.record({"type": "switch", "name": switch, "applied": known})

    def lacking(self, error: Any, dtype: Any, build: Callable[[], Any]) -> None:
        """Loading the weights failed: where memory lacked, tell what they take. build makes the model once more, of
        tensors without memory, and of this type where none is said."""
        torch = sys.modules["torch"]
        while error is not None and not isinstance(error, torch.cuda.OutOfMemoryError):
            error = error.__cause__
        if error is None:
            return
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            with torch.device("meta"):
                model = build()
        finally:
            torch.set_default_dtype(before)
        parts = {id(tensor): tensor.nbytes for tensor in (*model.parameters(), *model.buffers())}
        self.tell(weights_needed_bytes=sum(parts.values()))

    def http(self, module: Any, waits: bool = False) -> None:
        """uvicorn, which most engines answer with: it listens once its main loop begins. waits: the server is ready
        only when the adapter calls opened."""
        original = module.Server.main_loop

        @functools.wraps(original)
        async def main_loop(server: Any) -> None:
            self._server = server
            if not waits:
                self.opened()
            await original(server)

        module.Server.main_loop = main_loop

    def opened(self) -> None:
        """Requests can come over HTTP: have those answered that were asked for, and end the server."""
        server, load = self._server, asked() or self.first
        if load is not None:
            threading.Thread(target=self._answer, args=(load, server), daemon=True).start()
        elif self.answers() and server is not None:
            server.should_exit = True

    def _answer(self, load: Load, server: Any) -> None:
        """Have the server answer the requests that were asked for, then end it."""
        try:
            address = server.servers[0].sockets[0].getsockname()
            load.run(("127.0.0.1" if address[0] in ("0.0.0.0", "::") else address[0], address[1]), self.way)
        except Exception as error:
            load.refused = load.refused or "it could not be asked: %s" % error
        played = load.answered if load is not self.first else None
        self.tell(load_answered=played, load_refused=load.refused or None)
        if self.answers():
            server.should_exit = True

    def calls(self, owner: Any, names: Any) -> None:
        """Methods of an engine without a server, by which a program has texts made: the first call that returns shows
        that it serves, and ends a program that does nothing else. One with an optimizer trains. Where `ready` was asked
        for, the engine's own start ends it."""
        asked = READY in os.environ.get("HIGHTIDE_IMAGINE_UNTIL", "").split(",")
        for name in ("__init__",) if asked else names:
            original = owner.__dict__.get(name)
            if original is not None:
                setattr(owner, name, self._call(original))

    def _call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap one of them. Of calls within a call the outermost counts."""
        stop = control.Stop(self.agent)

        @functools.wraps(original)
        def call(*arguments: Any, **named: Any) -> Any:
            self._inside += 1
            try:
                result = original(*arguments, **named)
            finally:
                self._inside -= 1
            if not self._inside and not self.training.trains() and self.answers():
                stop.now(0, READY)
            return result

        return call

    def guarded(self, function: Callable[..., None], *arguments: Any, **named: Any) -> None:
        """Call it; what it raises is none of the server's."""
        try:
            function(*arguments, **named)
        except Exception as error:
            self.agent.log("could not look at the server", error)  # a note of the report: unseen in notes.go

    def _forget(self) -> None:
        self.facts = {name: self.facts[name] for name in ("engine", "version")}
        self._asked = False


def beside() -> bool:
    """Whether this start is beside others, which have the program's port: it is to listen on one of its own."""
    return os.environ.get(BESIDE) == "1"


def free_port() -> int:
    """A port on which nobody listens, for engines that ask themselves and so need to know it before."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _value(text: str) -> Any:
    """A setting as Python has it: a whole number, a fraction, true, or a word."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text == "true" if text in ("true", "false") else text
