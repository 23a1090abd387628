"""Limits that the engine watches for trackers and watchdogs: one alert for each limit, and who listens now."""

from __future__ import annotations

import threading
from typing import Callable, Dict, List, Tuple

from .. import _session
from ._readings import read
from ._system import cuda

Listener = Callable[[int], object]

_lock = threading.Lock()
_listeners: Dict[Tuple[str, str], List[Listener]] = {}  # by run and limit


def memory() -> str:
    """The series that limits are of: what the framework's allocator holds on a GPU if there is one, else the host's."""
    return "allocated" if cuda() is not None or read().on_device else "rss"


def watch(limit: str, listener: Listener) -> Callable[[], None]:
    """Have the engine call back with the bytes each time the limit is passed anew; what is returned ends that.

    Raises:
        ValueError: no limit is written like that.
    """
    key = (_session.here().get("run", ""), limit)
    with _lock:
        those = _listeners.get(key)
        new = those is None
        if those is None:
            those = _listeners[key] = []
        those.append(listener)
    if new and not _session.alert(limit, lambda alert: _tell(key, alert.value)):
        with _lock:
            _listeners.pop(key, None)

    def end() -> None:
        with _lock:
            if listener in those:
                those.remove(listener)

    return end


def _tell(key: Tuple[str, str], value: int) -> None:
    with _lock:
        those = list(_listeners.get(key, ()))
    for listener in those:
        listener(value)
