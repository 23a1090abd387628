"""Out of memory, as exceptions tell of it.

    MemoryError, NumPy's and each framework's own ─▶ classify ─▶ an `oom` record, once for each exception

An adapter adds its framework's errors to `known`. A device's that a framework tells of before it makes an exception
is recorded by its adapter instead.
"""

from __future__ import annotations

import os

from .agent import Agent
from .places import text_of, where

TYPE_CHECKING = False  # for type checkers only: see ending.py
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, FrozenSet, List, Optional, Set, Tuple

    # Who ran out ("MemoryError"), of which device's memory ("cpu"), and the bytes asked for, where known.
    Shortage = Tuple[str, str, Optional[int]]
    Classify = Callable[[BaseException], Optional[Shortage]]  # None: it is another error
    Place = Tuple[str, int, str]  # file, line and function

known: List[Classify] = []
said: Dict[str, Callable[[BaseException], Dict[str, Any]]] = {}  # by who ran out: fields that its words tell better
recorded: Dict[str, Callable[[], None]] = {}  # by who ran out: called once the record is written
told: Set[FrozenSet[str]] = set()  # words of errors that are recorded already, wherever they are raised later
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "PiB": 1 << 50, "EiB": 1 << 60}
_last = 0  # id of the exception that was recorded last: it may pass several places


def notice(
    agent: Agent,
    error: BaseException,
    step: int = -1,
    place: Optional[Place] = None,
    facts: Optional[Dict[str, Any]] = None,
) -> None:
    """Record an `oom` if the exception is one. Never raises, keeps no reference to it.

    `place`: of the call that failed, where the exception does not tell it; `facts`: more of the record.
    """
    global _last
    try:
        found = classify(error)
        if found is None or _last == id(error) or (place is None and words(error) in told):
            return
        _last = id(error)
        source, device, size = found
        file, line, function = place or where(error)
        record: Dict[str, Any] = {"type": "oom", "text": text_of(error), "source": source, "file": file, "line": line,
                                  "function": function, "device": device, **(facts or {})}  # fmt: skip
        if place is None and source in said:
            record.update(said[source](error))
        if size is not None:
            record["bytes"] = size
        if step >= 0:
            record["step"] = step
        if device == "cpu":
            record.update(_address_space())
        agent.record(record)
        recorded.get(source, _nothing)()
    except Exception as trouble:
        agent.log("could not record an out-of-memory error", trouble)


def words(error: BaseException) -> FrozenSet[str]:
    """What an error says. XLA says parts of it in another order each time, and adds who read the result of a call that
    failed: [executable_name='jit_loss']."""
    import re

    return frozenset(re.sub(r"\[[\w-]+='[^']*'\]", "", text_of(error)).split())


def _address_space() -> Dict[str, int]:
    """How much address space this process has, and may have where that is limited (ulimit -v)."""
    try:
        with open("/proc/self/limits", "rb", buffering=0) as limits, open(
            "/proc/self/statm", "rb", buffering=0
        ) as used:
            limit = limits.read().partition(b"Max address space")[2].split(None, 1)[0]
            if limit == b"unlimited":
                return {}
            pages = int(used.read().split(None, 1)[0])
            return {"limit_bytes": int(limit), "mapped_bytes": pages * os.sysconf("SC_PAGE_SIZE")}
    except (OSError, ValueError, IndexError, MemoryError):  # there may be no room for the answer
        return {}


def _nothing() -> None:
    pass


def classify(error: BaseException) -> Optional[Shortage]:
    """What ran out, if the exception says that memory did."""
    found = next(filter(None, (one(error) for one in known)), None)
    if found is None and isinstance(error, MemoryError):  # CuPy's is one, too, of a device
        return "MemoryError", "cpu", asked_bytes(text_of(error))
    return found


def asked_bytes(text: str) -> Optional[int]:
    """How much was asked for, where NumPy or PyTorch says so."""
    import re

    exact = re.search(r"tried to allocate (\d+) bytes", text)
    if exact:
        return int(exact.group(1))
    rounded = re.search(r"[Uu]nable to allocate ([\d.]+) (bytes|[KMGTPE]iB)", text)
    if rounded:
        return int(float(rounded.group(1)) * _UNITS[rounded.group(2)])
    return None
