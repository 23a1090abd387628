"""Calls for which memory ran out: which function it was, on which line, and what XLA needed for it.

    a call's result is an error ─▶ not of an argument's ─▶ an `oom` record, and what was alive then (held.py)

XLA raises an error where a result is read, which may be lines later or never. Here each call is waited for, which takes
no time: no kernel runs.
"""

from __future__ import annotations

import weakref
from typing import Any, Dict, Optional, Sequence

from ... import oom
from ...places import caller
from ...training import Training
from .held import Call, Held


class Failures:
    """Those of this process."""

    def __init__(self, training: Training, held: Held) -> None:
        self.training = training
        self.held = held
        self._spoilt: Dict[int, Any] = {}  # results that are errors, by id, weakly

    def look(self, call: Call, error: Optional[BaseException], frame: Any) -> bool:
        """Tell of a call that failed for lack of memory. `error`: raised by it; None: its results may be errors."""
        arrays = call.results or ()
        error = error or _error(arrays)
        if error is None:
            return False
        inherited = any(self._is_spoilt(array) for array in call.args)
        self._spoilt = {key: array for key, array in self._spoilt.items() if array() is not None}
        self._spoilt.update((id(array), weakref.ref(array)) for array in arrays)
        if inherited or oom.classify(error) is None:
            return False
        self.held.failed(call)
        self._tell(call, error, frame)
        return True

    def _is_spoilt(self, array: Any) -> bool:
        known = self._spoilt.get(id(array))
        return known is not None and known() is array

    def _tell(self, call: Call, error: BaseException, frame: Any) -> None:
        facts: Dict[str, Any] = {"used_bytes": self.held.in_use()}
        if call.program is not None:
            name, file, line = call.program.function.place
            facts = {**facts, "program": name, "program_file": file, "program_line": line, **call.program.sizes}
        oom.notice(self.training.agent, error, self.training.tracker.current_step(), caller(frame), facts)
        oom.told.add(oom.words(error))


def _error(arrays: Sequence[Any]) -> Optional[BaseException]:
    """What a call's results are in place of arrays; all of them are, or none."""
    for array in arrays[:1]:
        try:
            array.block_until_ready()
        except Exception as error:
            return error.with_traceback(None)  # which has frames, and these the call's arguments
    return None
