"""What the callback of a training framework tells hightide: one core for all of them.

    begin ─▶ hightide.init, unless something records already      enter, leave ─▶ spans      step ─▶ a step's mark,
    end   ─▶ hightide.stop of what began here                     where no optimizer's hook saw the trainer's step

A file for each framework calls these from its hooks: lightning.py, keras.py, transformers.py, accelerate.py. Nothing
here fails a training: what goes wrong is one line on standard error.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, TypeVar, cast

from . import _engine, _session, _trackers
from ._moments import figures
from ._spans import span

F = TypeVar("F", bound=Callable[..., Any])
OnAlert = Callable[[_session.Alert], object]


def harmless(method: F) -> F:
    """Keep what goes wrong in a callback from the training that calls it."""

    @functools.wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except Exception as error:
            _engine.say_once(f"{method.__qualname__} failed, the training goes on: {type(error).__name__}: {error}")
            return None

    return cast(F, called)


class Trainer:
    """A trainer's runs, one after the other.

    Args:
        name: of the run; empty: what the trainer calls it.
        tags: of the run, besides those that the framework's file gives.
        alerts: limits that the engine watches, as hightide.alert takes them.
        on_alert: called with each hightide.Alert; absent: one line on standard error.
    """

    def __init__(
        self, name: str = "", tags: Optional[Mapping[str, object]] = None, alerts: Iterable[str] = (),
        on_alert: Optional[OnAlert] = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.tags = dict(tags or {})
        self.alerts = [alerts] if isinstance(alerts, str) else list(alerts)
        self.on_alert = on_alert
        self.run = ""
        """of the training that is recorded now; empty: none is"""
        self._mine = False  # the recording began here, and ends here
        self._watched = ""  # the run whose alerts were asked for
        self._open: List[Any] = []  # (name, span), innermost last
        self._alone = ""  # the part of no training for which the recording began
        self._taken = self._seen = 0  # steps, by the trainer's count and by the recording's
        self._pid = 0  # of the process that all this is about

    def begin(self, name: str, tags: Mapping[str, object], first: bool = True) -> None:
        """A training begins; one that never ended has ended. `first`: this is the process that leads the others.

        The others are recorded where something records all of them, as `hightide run` does.
        """
        if self.run and self._pid == os.getpid():
            self.end()
        recorded = _session.recorded()
        if not first and not recorded:
            return
        name, tags = self.name or name, {**tags, **self.tags}
        if recorded:
            self.run = _session.here().get("run", "")
            _engine.agent().name_run(name, texts(tags))
        else:
            self.run = _session.init(name, texts(tags)) or ""
        self._mine, self._pid, self._alone = bool(self.run) and not recorded, os.getpid(), ""
        self._open, self._taken, self._seen = [], 0, _steps()
        self._watch()

    def _watch(self) -> None:
        if not self.run or self._watched == self.run:
            return
        self._watched = self.run
        for limit in self.alerts:
            try:
                _session.alert(limit, self.on_alert)
            except ValueError as error:
                _engine.say(f"alert not watched: {error}")

    @property
    def running(self) -> bool:
        """Whether a training of this process is recorded; not in a forked child, whose parent's it is."""
        return bool(self.run) and self._pid == os.getpid()

    def alone(self, part: str, run: str, tags: Mapping[str, object], first: bool = True) -> None:
        """A part begins, such as an evaluation. Outside of a training it is a run of its own."""
        if not self.running:
            self.begin(run, tags, first)
            self._alone = part
        self.enter(part)

    def enter(self, part: str) -> None:
        """A part of the training begins, such as an epoch."""
        if self.running and not self.inside(part):
            self._open.append((part, span(part)))
            self._open[-1][1].__enter__()

    def leave(self, part: str) -> None:
        """It ends, and with it parts inside that an exception kept from ending."""
        if self.running and self.inside(part):
            while self._open:
                inner, stay = self._open.pop()
                stay.__exit__()
                if inner == part:
                    break
        if part == self._alone:
            self.end()

    def inside(self, part: str) -> bool:
        """Whether a part has begun and not ended."""
        return any(name == part for name, _ in self._open)

    def step(self, taken: int) -> None:
        """So many steps has the trainer taken. Where nothing saw the latest, it is marked."""
        seen = _steps()
        if taken > self._taken and seen == self._seen and self.running:
            _engine.agent().step()
            seen = _steps()
        self._taken, self._seen = taken, seen

    def tag(self, values: Mapping[str, object]) -> None:
        """Tag the run; what is tagged already stays."""
        if self.running and values:
            _engine.agent().name_run("", texts(values))

    def figures(self) -> Dict[str, int]:
        """What goes to the trainer's own logger: hightide.figures()."""
        self.link()
        return figures()

    @harmless
    def link(self, *trackers: _trackers.Tracker) -> None:
        """Let experiment trackers that record the same training know this run, and this run know theirs."""
        if self.running:
            _trackers.link(self.run)
            for tracker in trackers:
                _trackers.link_with(self.run, tracker)

    def end(self) -> None:
        """The training has ended. A recording that began for it is completed, and said in one line."""
        if not self.running:
            return
        self.link()
        while self._open:
            self._open.pop()[1].__exit__()
        run, self.run, self._alone = self.run, "", ""
        if self._mine:
            _session.end(run)


class Recording:
    """Stands before a framework's own class among the bases of a callback: what all callbacks are made with.

    Args:
        name: of the run; empty: what the trainer calls it.
        tags: of the run.
        alerts: limits to watch, such as "rss > 2GiB" and "rss > 50MiB/step".
        on_alert: called with each hightide.Alert, on a thread of its own; absent: one line on standard error.
    """

    def __init__(
        self, name: str = "", tags: Optional[Mapping[str, object]] = None, alerts: Iterable[str] = (),
        on_alert: Optional[OnAlert] = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._trainer = Trainer(name, tags, alerts, on_alert)


def texts(values: Mapping[str, object]) -> Dict[str, str]:
    """Plain values as tags; lists, tensors and the like are left out."""
    return {str(key): str(value) for key, value in values.items() if isinstance(value, (str, int, float))}


def _steps() -> int:
    """Steps of the recording so far."""
    agent = _engine.agent()
    return agent.steps() if agent is not None else 0
