"""Calls of a function, each a run of its own: what a scheduler starts as a step or a task.

    @recorded(folder="/runs")   nothing records: hightide.init ─▶ the call ─▶ hightide.stop, and one line that says it
                                something does:  the call is a span of that run

A call is what it is without us: what it returns and raises, and that it runs where hightide's program is missing.
"""

from __future__ import annotations

import functools
import inspect
import os
from threading import Lock
from typing import Any, Callable, Dict, Mapping, Optional, TypeVar, Union, cast, overload

from . import _engine, _session
from ._spans import function_name, span

F = TypeVar("F", bound=Callable[..., Any])

# What schedulers put into the environment of a step, as tags of its run.
_TOLD = {
    "AIRFLOW_CTX_DAG_ID": "dag", "AIRFLOW_CTX_TASK_ID": "task", "AIRFLOW_CTX_DAG_RUN_ID": "dag_run",
    "AIRFLOW_CTX_TRY_NUMBER": "try", "FLYTE_INTERNAL_EXECUTION_ID": "execution", "FLYTE_INTERNAL_TASK_NAME": "task",
}  # fmt: skip


@overload
def recorded(function: F) -> F: ...
@overload
def recorded(
    function: None = None, *, name: str = "", folder: str = "", tags: Optional[Mapping[str, object]] = None
) -> Callable[[F], F]: ...
def recorded(
    function: Optional[F] = None, *, name: str = "", folder: str = "", tags: Optional[Mapping[str, object]] = None
) -> Union[F, Callable[[F], F]]:
    """Decorate a function so that each of its calls is a run, for steps of Airflow, Flyte, Metaflow and tasks of Ray.

    It stands below the scheduler's own decorator. The process is recorded from the call's beginning to its end, with
    the lines that allocate; the first call in a process waits for the engine. Where the process is recorded already,
    as under `hightide run`, the call is a span of that run; so is one that begins while another is being recorded. What
    goes wrong is one line on standard error, and the function is called as ever.

    Args:
        name: of the run, and of the span; empty: the function's.
        folder: of the recordings, as --data-dir; one that outlives the step. Empty: $HIGHTIDE_DATA, else the user's.
        tags: of the run. What Airflow and Flyte say of the step in its environment are tags too, and so is the
            exception that ended it, as `raised`.
    Raises:
        TypeError: tags is not a mapping, the function cannot be called, or it is an asynchronous generator.
    """
    if tags is not None and not isinstance(tags, Mapping):
        raise TypeError(f"tags maps names to values, as {{'model': 'bert'}}; it is not a {type(tags).__name__}")
    if function is not None and not callable(function):
        raise TypeError(f"recorded takes a function, and {function!r} cannot be called: write @recorded(name=…)")
    given = {str(key): str(value) for key, value in (tags or {}).items()}

    def decorate(function: F) -> F:
        return _wrapped(function, str(name) or function_name(function), os.fspath(folder), given)

    return decorate if function is None else decorate(function)


def _wrapped(function: F, name: str, folder: str, tags: Dict[str, str]) -> F:
    if inspect.isasyncgenfunction(function):
        raise TypeError(f"{name} is an asynchronous generator, which cannot be recorded: decorate what uses it")
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            with Call(name, folder, tags):
                return await function(*args, **kwargs)

        return cast(F, awaited)
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generated(*args: Any, **kwargs: Any) -> Any:
            with Call(name, folder, tags):
                return (yield from function(*args, **kwargs))

        return cast(F, generated)

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        with Call(name, folder, tags):
            return function(*args, **kwargs)

    return cast(F, called)


class Call:
    """A call that is recorded. Named at the module's top, so that a function sent to another process finds it there."""

    _lock = Lock()
    _open = 0  # calls of this process that the recording is for
    _began = ""  # the run that the first of them began

    def __init__(self, name: str, folder: str, tags: Dict[str, str]) -> None:
        self.name, self.folder, self.tags = name, folder, tags
        self._span: Optional[span] = None

    def __enter__(self) -> None:
        try:
            with Call._lock:
                if not Call._open and not _session.recorded():
                    told = {tag: os.environ[key] for key, tag in _TOLD.items() if os.environ.get(key)}
                    Call._began = _session.init(self.name, {**told, **self.tags}, folder=self.folder) or ""
                Call._open += 1
            self._span = span(self.name)
            self._span.__enter__()
        except Exception as error:
            _engine.say_once(f"{self.name} is not recorded: {type(error).__name__}: {error}")

    def __exit__(self, kind: Any, *_: object) -> None:
        try:
            if self._span is not None:
                self._span.__exit__()
            with Call._lock:
                Call._open -= 1
                if Call._open or not Call._began:
                    return
                run, Call._began = Call._began, ""
                if kind is not None and _session.recorded():
                    _engine.agent().name_run("", {"raised": kind.__name__})
                _session.end(run)
        except Exception as error:
            _engine.say_once(f"the recording of {self.name} did not end: {type(error).__name__}: {error}")


def _forked() -> None:
    """In a forked child the recording is its parent's."""
    Call._lock, Call._open, Call._began = Lock(), 0, ""


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
