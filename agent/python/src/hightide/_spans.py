"""Named spans: what a part of a program takes, by the program's own name for it.

    with span("encode"): …      @span("encode")      @profile ─▶ hightide_agent.spans ─▶ the recording

Where nothing records, entering and leaving one is a look at a variable.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Optional, TypeVar, Union, cast, overload

from . import _engine, _session

F = TypeVar("F", bound=Callable[..., Any])


class span:
    """A part of the program, by name: a context manager, and a decorator of functions and coroutine functions.

    Spans nest, also one in itself; those of threads and of asynchronous tasks overlap as they like. What is recorded of
    each stay: how long, the resident set at both ends and its highest reading between. Also what the framework's
    allocator held on the device, and in the report the lines that memory rose by.
    """

    __slots__ = ("_stays", "name")

    def __init__(self, name: str) -> None:
        self.name = name if isinstance(name, str) else str(name)
        self._stays: Any = None  # (innermost stay, those around it)

    def __enter__(self) -> span:
        recorder = _session.recorder if _session.known else _session.look()
        self._stays = (None if recorder is None else recorder.enter(self.name), recorder, self._stays)
        return self

    def __exit__(self, *_: object) -> None:
        if self._stays is None:
            _engine.say_once(f"span {self.name!r} is left, and was not entered: nothing is recorded of that")
            return
        stay, recorder, self._stays = self._stays
        if stay is not None:
            recorder.leave(stay)

    def __call__(self, function: F) -> F:
        """Make every call of a function a stay in this span; of a coroutine or generator, from its start to its end.

        Raises:
            TypeError: an asynchronous generator: put `with hightide.span(…)` into it.
        """
        return _wrapped(function, self.name)

    def __repr__(self) -> str:
        return f"hightide.span({self.name!r})"


@overload
def profile(function: F) -> F: ...
@overload
def profile(function: Optional[str] = None) -> Callable[[F], F]: ...
def profile(function: Union[F, str, None] = None) -> Union[F, Callable[[F], F]]:
    """Decorate a function so that each of its calls is a span of its name, or of the name given."""
    if callable(function):
        return _wrapped(function, function_name(function))
    if function is not None and not isinstance(function, str):
        raise TypeError(f"profile takes a function, or a name for its span, and not {function!r}")
    name = function
    return lambda function: _wrapped(function, name or function_name(function))


def function_name(function: Any) -> str:
    """What a function is called: without the functions that it stands in, as "Trainer.fit"."""
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or type(function).__name__
    return str(name).rpartition("<locals>.")[2]


def _wrapped(function: F, name: str) -> F:
    if inspect.isasyncgenfunction(function):
        raise TypeError(f"{name} is an asynchronous generator: put `with hightide.span({name!r})` into it")
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            with span(name):
                return await function(*args, **kwargs)

        return cast(F, awaited)
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generated(*args: Any, **kwargs: Any) -> Any:
            with span(name):
                return (yield from function(*args, **kwargs))

        return cast(F, generated)

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        recorder = _session.recorder if _session.known else _session.look()
        if recorder is None:
            return function(*args, **kwargs)
        stay = recorder.enter(name)
        try:
            return function(*args, **kwargs)
        finally:
            recorder.leave(stay)

    return cast(F, called)
