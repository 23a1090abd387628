"""Arguments that a program could have taken over, and did not: they were let go of as its result came.

    a program is compiled for a call ─▶ arguments of the same type as an output, not donated ─▶ weak references
    one ends while nothing but the call's result is stored, in a name it was passed by ─▶ it was not needed again

`state = step(state)` is what this sees: the old state lives until the new one is there, unless it is donated. Only the
call that compiled the program is looked at, as one that finds it compiled runs no Python. What an argument's end
cannot be told for is not told.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections import Counter
from typing import TYPE_CHECKING, Any, Dict, List, Set, Tuple

from ..frames import variables
from ..places import is_library
from ..watcher import hold_scans
from .wrapped import is_wrapper

if TYPE_CHECKING:
    from ..agent import Agent

LEAST = 1 << 20  # bytes of one array; what is smaller is left alone
MOST = 4096  # arrays of one call that are followed
STACK = 40  # frames that are searched for the call
QUIET_NS = 2_000_000_000  # in which no scan may keep an argument until its own end


class Argument:
    """One array that a program takes."""

    __slots__ = ("aval", "bytes", "donated", "name", "position", "type")

    def __init__(self, position: int, name: str, aval: Any, donated: bool) -> None:
        self.position, self.name, self.aval, self.donated = position, name, aval, donated
        self.type = str(aval.str_short()) if hasattr(aval, "str_short") else str(aval)
        self.bytes = int(getattr(aval, "size", 0)) * int(getattr(getattr(aval, "dtype", None), "itemsize", 0))


class _Watched:
    """A call whose arguments' ends are waited for."""

    __slots__ = ("bytes", "code", "record", "references", "stores", "thread", "where")

    def __init__(self, record: Dict[str, Any], code: Any, call: int) -> None:
        self.record, self.code = record, code
        self.stores = around(code, call)
        self.thread = threading.get_ident()
        self.references: Dict[int, Any] = {}  # by number: arrays cannot be looked up
        self.bytes = 0
        self.where: List[str] = []


class Donation:
    """The calls of this process that are looked at."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._watched: List[_Watched] = []
        agent.on_renew.append(self._forget)

    def _forget(self) -> None:
        if not self.agent.moving:
            self._watched = []

    def look(self, record: Dict[str, Any], computation: Any, arguments: List[Argument], frame: Any) -> None:
        """Follow the arrays of this call that could have been donated."""
        self.tell()
        if is_library(record["file"]):  # whose user cannot name its arguments
            return
        candidates = donatable(arguments, computation.compile_args["global_out_avals"])
        if not candidates:
            return
        passed, caller = called(frame)
        if caller is None:
            return
        watched = _Watched(record, caller.f_code, caller.f_lasti)
        if not watched.stores:
            return
        for argument in candidates[:MOST]:
            if not 0 <= argument.position < len(passed):
                continue
            array = passed[argument.position]
            if getattr(array, "shape", None) != argument.aval.shape or getattr(array, "nbytes", 0) != argument.bytes:
                return  # these are not the program's arguments in their order
            self._follow(watched, array, argument)
        self._watched.append(watched)
        hold_scans(QUIET_NS)

    def _follow(self, watched: _Watched, array: Any, argument: Argument) -> None:
        name, size, references = argument.name, argument.bytes, watched.references
        number = len(references)

        def gone(_: Any, finalizing: Any = sys.is_finalizing) -> None:
            references.pop(number, None)
            if finalizing():  # no frame is left, and of this module no names
                return
            try:
                frame = sys._getframe(1)
            except ValueError:  # the last of them has ended, too
                return
            at_store = frame.f_code is watched.code and frame.f_lasti in watched.stores
            if at_store and threading.get_ident() == watched.thread:
                watched.bytes += size
                watched.where.append(name.partition("[")[0].partition(".")[0])

        references[number] = weakref.ref(array, gone)

    def tell(self) -> None:
        """Record what has been seen, once for each call; calls whose arguments live on are waited for."""
        for watched in self._watched:
            if watched.bytes:
                of = watched.record
                self.agent.record(
                    {"type": "donation", "framework": "jax", "device": of["device"], "function": of["function"],
                     "file": of["file"], "line": of["line"], "bytes": watched.bytes, "count": len(watched.where),
                     "argument": ", ".join(dict.fromkeys(watched.where))}
                )  # fmt: skip
        self._watched = [w for w in self._watched if w.references and not w.bytes][-64:]


def donatable(arguments: List[Argument], outputs: Any) -> List[Argument]:
    """The arguments that an output could take the place of: the same shape and type, and none donated for it yet."""
    free = Counter(_kind(aval) for aval in outputs)
    for argument in arguments:
        if argument.donated:
            free[_kind(argument.aval)] -= 1
    found = []
    for argument in arguments:
        kind = _kind(argument.aval)
        if not argument.donated and free[kind] > 0 and argument.bytes >= LEAST and argument.position >= 0:
            free[kind] -= 1
            found.append(argument)
    return found


def _kind(aval: Any) -> Tuple[Any, str]:
    return getattr(aval, "shape", None), str(getattr(aval, "dtype", None))


def called(frame: Any) -> Tuple[Any, Any]:
    """The arrays that were passed, flat, and the frame that called the jitted function and keeps its result."""
    passed: Any = None
    for _ in range(STACK):
        if frame is None:
            return (), None
        if passed is None and frame.f_code.co_name == "cache_miss":
            passed = variables(frame).get("args_flat")
        elif passed is not None and "/jax/_src/" not in frame.f_code.co_filename:
            break
        frame = frame.f_back
    while frame is not None and (is_wrapper(frame) or returns(frame.f_code, frame.f_lasti)):  # it hands on what it gets
        frame = frame.f_back
    return ((), None) if frame is None or passed is None else (passed, frame)


def returns(code: Any, call: int) -> bool:
    """Whether a function returns what this call in it gives."""
    after = [i for i in instructions(code) if i.offset > call and i.opname not in NOTHING][:1]
    return bool(after) and after[0].opname == "RETURN_VALUE"


def around(code: Any, call: int) -> Set[int]:
    """The places behind a call that store its result in a name that was loaded for it, with nothing else between."""
    all = instructions(code)
    at = sum(i.offset <= call for i in all) - 1  # `call` may be within it: of a function of Python, its last word
    if at < 0:
        return set()
    loaded: Set[str] = set()
    for instruction in reversed(all[:at]):
        if instruction.opname.startswith("STORE_") or instruction.opname in STARTS:
            break
        if instruction.opname.startswith("LOAD_") and instruction.opname != "LOAD_CONST":
            loaded.update(names(instruction))
    stores: Set[int] = set()
    container: List[str] = []  # names that were loaded to store into: state of state["w"]
    for instruction in all[at + 1 :]:
        name = instruction.opname
        if name.startswith("STORE_"):
            into = container if name in ("STORE_SUBSCR", "STORE_SLICE") else names(instruction)
            if loaded.intersection(into[:1] if "LOAD" in name else into):
                stores.add(instruction.offset)
            container = names(instruction)[1:] if "LOAD" in name else []
        elif name.startswith(("LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF")):
            container = names(instruction)
        elif name not in NOTHING and name not in ("LOAD_CONST", "LOAD_SMALL_INT", "UNPACK_SEQUENCE", "UNPACK_EX"):
            break
    return stores


NOTHING = ("CACHE", "NOP", "EXTENDED_ARG", "RESUME", "PRECALL", "NOT_TAKEN")
STARTS = ("POP_TOP", "POP_ITER", "FOR_ITER", "RETURN_VALUE")


def names(instruction: Any) -> List[str]:
    value = instruction.argval
    return [str(v) for v in value] if isinstance(value, tuple) else [str(value)]


def instructions(code: Any) -> List[Any]:
    import dis

    return list(dis.get_instructions(code))
