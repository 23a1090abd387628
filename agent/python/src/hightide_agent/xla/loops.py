"""Steps of plain loops: calls of one compiled function whose result replaces what it was given.

    a program is compiled for a call ─▶ what it was given, and results of the same types, are waited for
    one ends where the caller stores the next result: `state = step(state, batch)` ─▶ a step has ended
                                                     └▶ the arrays that are there now are waited for

A jitted call that is in JAX's cache runs no Python, and none is made to: the end of an array calls back. Of several
functions that are called so, the largest tells the steps. A program that imports hightide can say hightide.step(), so
nothing is guessed.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from types import FunctionType
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

from ..frames import variables
from ..places import is_library
from ..watcher import hold_scans
from .donation import NOTHING, QUIET_NS, STARTS, called, instructions, names

if TYPE_CHECKING:
    from ..training import Training

FOLLOWED = 4  # arrays of one call that are waited for: some may be handed on as they are
DEPTH = 8  # of containers in which an array is looked for
SMALLEST = 256  # bytes of what is handed on; less is a key of random numbers
LOADS = ("LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_ATTR", "LOAD_METHOD")


class _Loop:
    """The calls of one compiled function from one piece of code."""

    def __init__(self, size: int, function: str, code: Any) -> None:
        self.size = size  # of the function's largest program
        self.code = code  # that calls it
        self.targets: Optional[List[Tuple[str, str]]] = None  # of all stores there that take its result
        self.function = function  # by the name that the caller calls it
        self.thread = threading.get_ident()
        self.passes = 0
        self.references: List[Any] = []
        self.stores: Dict[Tuple[Any, int], Optional[Tuple[str, str]]] = {}  # by code and place: see _target


class Loops:
    """Those of this process."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self.agent = training.agent
        self._loops: Dict[Any, _Loop] = {}  # by the function's place and the caller's code
        self._calling: Optional[_Loop] = None  # whose first call runs
        self.agent.on_renew.append(self._loops.clear)

    def install(self, pxla: Any) -> None:
        """See what calls give that run Python: those for which something was compiled."""
        original = pxla.ExecuteReplicated.__call__

        @functools.wraps(original)
        def call(executable: Any, /, *args: Any) -> Any:
            results = original(executable, *args)
            loop = self._calling
            if loop is not None and loop.thread == threading.get_ident():
                self._calling = None
                try:
                    types = {_type(array) for array in args if getattr(array, "nbytes", 0) >= SMALLEST}
                    self._wait(loop, [array for array in results if _type(array) in types], calls=2)
                except Exception as error:
                    self.agent.log("could not follow a loop", error)
            return results

        pxla.ExecuteReplicated.__call__ = call

    def look(self, place: Tuple[str, str, int], size: int, frame: Any) -> None:
        """A program of the function at `place` is compiled for the call that runs in `frame`."""
        if is_library(place[1]) or "hightide" in sys.modules:
            return
        passed, caller = called(frame)
        if caller is None or is_library(caller.f_code.co_filename):
            return
        key = place, caller.f_code
        loop = self._loops.get(key)
        if loop is not None:
            loop.size = max(loop.size, size)
        function = _callee(caller.f_code, caller.f_lasti)
        if not function or (loop is not None and any(r() is not None for r in loop.references)):
            return
        if loop is None:
            hold_scans(QUIET_NS)
        loop = self._calling = self._loops[key] = loop or _Loop(size, function, caller.f_code)
        loop.references = []
        self._wait(loop, [array for array in passed if _is_array(array)], calls=1)

    def _wait(self, loop: _Loop, arrays: List[Any], calls: int) -> None:
        """Wait for the first of these to end, too: so many calls have then ended."""
        references = loop.references
        chosen = arrays if len(arrays) <= FOLLOWED else [arrays[at * len(arrays) // FOLLOWED] for at in range(FOLLOWED)]

        def gone(_: Any, finalizing: Any = sys.is_finalizing) -> None:
            try:
                if not finalizing() and loop.references is references:
                    self._ended(loop, sys._getframe(1), calls)
            except ValueError:  # the last frame has ended, too
                return
            except Exception as error:
                self.agent.log("could not follow a loop", error)

        references += [weakref.ref(array, gone) for array in chosen]

    def _ended(self, loop: _Loop, frame: Any, calls: int) -> None:
        """An array has ended in this frame: where its name is given the function's result, that is the next one."""
        if threading.get_ident() != loop.thread:
            self._ended_elsewhere(loop, calls)
            return
        at = frame.f_code, frame.f_lasti
        if at not in loop.stores:
            loop.stores[at] = _target(frame.f_code, frame.f_lasti, loop.function)
        target = loop.stores[at]
        if target is None:
            return
        loop.references = []
        self._wait(loop, _held(frame, [target]), calls=1)
        first = loop.passes < 2
        loop.passes += calls
        if loop.passes < 2 or any(other.size > loop.size and other.passes > 1 for other in self._loops.values()):
            return
        for _ in range(loop.passes if first else calls):  # that the first was a step shows at the second
            self.training.steps.passed(loop, guessed=True)

    def _ended_elsewhere(self, loop: _Loop, calls: int) -> None:
        """Another thread had a reference for a moment, as one that looks at what the program holds: follow those that
        are there now. The call whose result replaced it is told with the next one."""
        frame = sys._current_frames().get(loop.thread)
        while frame is not None and frame.f_code is not loop.code:
            frame = frame.f_back
        if frame is not None:
            loop.references = []
            if loop.targets is None:  # reading a long function takes a while
                places = [i.offset for i in instructions(loop.code) if i.opname.startswith("STORE_")]
                found = [_target(loop.code, at, loop.function) for at in places]
                loop.targets = [target for target in found if target]
            self._wait(loop, _held(frame, loop.targets), calls=calls + 1)


def _held(frame: Any, targets: List[Tuple[str, str]]) -> List[Any]:
    """Arrays in what these names of a frame hold, or of its module."""
    names = variables(frame)
    found: List[Any] = []
    for owner, name in targets:
        if owner:
            value = getattr(names.get(owner, frame.f_globals.get(owner)), "__dict__", {}).get(name)
        else:
            value = names.get(name, frame.f_globals.get(name))
        _arrays(value, found, DEPTH)
    return found


def _type(array: Any) -> Tuple[Any, str]:
    return array.shape, str(array.dtype)


def _is_array(value: Any) -> bool:
    """Asked of the type: in JAX 0.4 an array that was asked for its shards is kept by them, for good."""
    return hasattr(type(value), "addressable_shards")


def _arrays(value: Any, found: List[Any], depth: int) -> None:
    """Some arrays in what a name holds; JAX's own walk would make lists of all of them."""
    if len(found) >= 4 * FOLLOWED or depth == 0:
        return
    if _is_array(value):
        found.append(value)
    elif isinstance(value, dict):
        for item in list(value.values())[: 4 * FOLLOWED]:
            _arrays(item, found, depth - 1)
    elif isinstance(value, (list, tuple)):
        for item in value[: 4 * FOLLOWED]:
            _arrays(item, found, depth - 1)
    elif hasattr(value, "__dict__") and not isinstance(value, (type, FunctionType)):  # a model may be called
        for item in list(vars(value).values()):
            _arrays(item, found, depth - 1)


def _callee(code: Any, call: int) -> str:
    """The name of the function that is called there: the first that the statement loads and calls; "" if not known."""
    return next(iter(_loaded(code, call)), "")


def _loaded(code: Any, at: int) -> List[str]:
    """Names that the statement at a place has loaded so far, in their order."""
    before = [i for i in instructions(code) if i.offset <= at]
    found: List[str] = []
    for instruction in reversed(before[:-1]):
        if instruction.opname.startswith("STORE_") or instruction.opname in STARTS:
            break
        if instruction.opname.startswith(LOADS):
            found[:0] = names(instruction)
    return found


def _target(code: Any, at: int, function: str) -> Optional[Tuple[str, str]]:
    """What is stored there, as (owner of an attribute or "", name), if the statement calls the function; else None."""
    all = [i for i in instructions(code) if i.opname not in NOTHING]
    here = next((n for n, i in enumerate(all) if i.offset == at), None)
    if here is None or not all[here].opname.startswith("STORE_"):
        return None
    first = here  # of the stores of this statement, which follow one another
    while first > 0 and all[first - 1].opname.startswith(
        ("STORE_", "UNPACK_", "LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL")
    ):
        first -= 1
    if function not in _loaded(code, all[first].offset):
        return None
    if all[here].opname in ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF"):
        return "", names(all[here])[0]
    if all[here].opname == "STORE_ATTR" and all[here - 1].opname.startswith(("LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL")):
        return names(all[here - 1])[-1], names(all[here])[0]
    return None
