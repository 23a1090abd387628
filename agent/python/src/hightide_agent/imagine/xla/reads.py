"""Numbers that the program reads of arrays and no kernel computed: what each decides.

    float(x), if x:, x.item() … ─▶ known to the device? ─▶ nothing
                                     └ not ─▶ asked for by line (--read-value) ─▶ that
                                           └ not ─▶ the frame that reads ─▶ a check that only raises ─▶ it passes
                                                                          └▶ a size, a branch … ─▶ a conditional verdict

No second run takes another number, so what decides is told as unsure. A whole array that is copied to the host
(numpy.asarray, jax.device_get) is counted by the device alone, with its line.
"""

from __future__ import annotations

import functools
import json
import sys
from typing import Any, Callable, Optional

from ...places import caller
from ..device import Device
from ..ledger import Ledger
from ..undecided import Asked, Use, followed, typed

READERS = ("__bool__", "__int__", "__float__", "__index__", "item", "tolist")
OF_JAX = ("/jax/", "/jaxlib/")


def install(ledger: Ledger) -> Callable[[Any], None]:
    """Look at each read of an array on a GPU; called with the module of JAX's arrays."""
    reads = Reads(ledger)

    def wrap(module: Any) -> None:
        for name in READERS:
            original = getattr(module.ArrayImpl, name, None)
            if original is not None:
                setattr(module.ArrayImpl, name, reads.wrapped(original))

    return wrap


class Reads:
    """The record of each line that reads."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.device = Device()
        self.asked = Asked()

    def wrapped(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A method of arrays that reads a number."""

        @functools.wraps(original)
        def read(array: Any, *args: Any) -> Any:
            try:
                answer = self._answer(array, sys._getframe(1))
            except Exception as error:
                self.ledger.agent.log("could not follow a number that is read", error)
                answer = None
            return original(array, *args) if answer is None else answer

        return read

    def _answer(self, array: Any, frame: Any) -> Optional[Any]:
        """What a check that only raises is to be given; None: zero, as the device has it."""
        if not self._made_up(array):
            return None
        frame = _outside(frame)
        if frame is None:
            return None
        kind = array.dtype.kind
        number = {"b": "bool", "i": "int", "u": "int"}.get(kind, "float")
        use, at = followed(frame, number == "float")
        file, line, function = caller(frame)
        value = self.asked.at(file, line)
        if value is not None:
            value = typed(value, number)
            self._note(file, line, function, use, number, value, answered=True)
            return value
        if not use.kind:
            return None
        if use.passes is None or array.size != 1:
            self._note(file, line, function, use, number, 0, unsure=True)
            return None
        value = use.test.find(bool(use.passes), at) if use.test is not None else int(use.passes)
        if value is None:
            self._note(file, line, function, use._replace(kind="check"), number, 0)
            return None
        value = typed(value, number)
        if use.caught:
            self._note(file, line, function, use._replace(kind="caught"), number, value, unsure=True)
        return value

    def _made_up(self, array: Any) -> bool:
        if not array.size or next(iter(array.devices())).platform != "gpu":
            return False
        return not self.device.has(array.addressable_data(0).unsafe_buffer_pointer(), array.nbytes)

    def _note(self, file: str, line: int, function: str, use: Use, number: str, value: Any, **more: Any) -> None:
        self.ledger.note("readback", (file, line), file=file, line=line, function=function,
                         use=use.kind or "nothing", use_line=use.line, number=number, value=json.dumps(value),
                         **{"answered": False, **more})  # fmt: skip


def _outside(frame: Any) -> Any:
    """The innermost frame, from this one outwards, that is neither JAX's nor ours."""
    while frame is not None:
        name = frame.f_code.co_filename
        if "hightide_agent" not in name and not any(part in name for part in OF_JAX):
            return frame
        frame = frame.f_back
    return None
