"""What adapters of runtimes share that run models and train none.

    a call of a session ─▶ forward, the end of a step         a session that is made ─▶ facts on the largest model

Of several sessions, such as an encoder and a decoder, the one that was called first leads: the calls of others belong
to its steps. A training's optimizer leads before all of them.
"""

from __future__ import annotations

import functools
import os
import weakref
from typing import Any, Callable, Dict, Iterable, List, Optional

from .tracker import FORWARD
from .training import Training


class Sessions:
    """The sessions of one runtime."""

    def __init__(self, training: Training, name: str) -> None:
        self.training = training
        self.name = name  # what its facts begin with
        self.at_first: List[Callable[[], None]] = []  # called after the first call of a session
        self._lead: Optional[Callable[[], Any]] = None  # a weak reference to the session that was called first
        self._largest = -1  # bytes

    def calls(self, kind: Any, names: Iterable[str]) -> None:
        """Have each call of these methods of a class, where it has them, be a step."""
        for name in names:
            if hasattr(kind, name):
                setattr(kind, name, self._stepping(getattr(kind, name)))

    def _stepping(self, function: Callable[..., Any]) -> Callable[..., Any]:
        inside = self.training.phase(FORWARD, function)

        @functools.wraps(function)
        def call(session: Any, /, *args: Any, **kwargs: Any) -> Any:
            result = inside(session, *args, **kwargs)
            if self._lead is None or self._lead() is None:
                self._lead = weakref.ref(session)
                self._first()
            if self._lead() is session:
                self.training.steps.passed(session, guessed=True)
            return result

        return call

    def leading(self) -> Any:
        """The session that was called first; None: there is none any more."""
        return self._lead() if self._lead else None

    def _first(self) -> None:
        for function in self.at_first:
            try:
                function()
            except Exception as error:
                self.training.agent.log("what sessions of %s take was not seen" % self.name, error)

    def made(self, kind: Any, model: Callable[..., Any], facts: Callable[..., Dict[str, Any]]) -> None:
        """Have a session tell what it is made of, once it is made. `model` is its path or bytes, `facts` what else is
        so: both are handed the arguments, `facts` the session in front of them."""
        original = kind.__init__

        @functools.wraps(original)
        def init(session: Any, /, *args: Any, **kwargs: Any) -> None:
            original(session, *args, **kwargs)
            self.loaded(lambda: model(*args, **kwargs), lambda: facts(session, *args, **kwargs))

        kind.__init__ = init

    def loaded(self, model: Callable[[], Any], facts: Callable[[], Dict[str, Any]]) -> None:
        """Tell of a session that was made: `model` is its path or bytes."""
        try:
            self._tell(model(), facts)
        except Exception as error:
            self.training.agent.log("what a session of %s is was not seen" % self.name, error)

    def _tell(self, model: Any, facts: Callable[[], Dict[str, Any]]) -> None:
        size = len(model) if isinstance(model, bytes) else os.path.getsize(model)
        if size <= self._largest:
            return
        self._largest = size
        told = {"model": "%d bytes, handed over in memory" % size}
        if not isinstance(model, bytes):
            path = os.path.realpath(os.fspath(model))
            how = "mapped" if mapped(path) else "copied"
            told = {"model": "%s, %d bytes, %s" % (os.path.basename(path), size, how)}
        for key, value in {**told, **facts()}.items():
            self.training.agent.fact("%s_%s" % (self.name, key), value)


def mapped(path: str) -> int:
    """Bytes of a file that this process has mapped, in whole pages."""
    total = 0
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            words = line.rstrip("\n").split(None, 5)
            if len(words) == 6 and words[5] == path:
                begin, _, end = words[0].partition("-")
                total += int(end, 16) - int(begin, 16)
    return total
