"""Numbers that the program reads of a framework's arrays and no kernel computed: what each decides.

    float(x), if x:, x.item() … ─▶ known to the device? ─▶ nothing
                                     └ not ─▶ asked for by line (--read-value) ─▶ that
                                           └ not ─▶ the frame that reads ─▶ a check that only raises ─▶ it passes
                                                                          └▶ a size, a branch … ─▶ a conditional verdict

No second run takes another number, so what decides is told as unsure. JAX and TensorFlow each say what their
arrays are.
"""

from __future__ import annotations

import functools
import json
import sys
from typing import Any, Callable, Optional, Tuple

from ..places import caller
from .device import Device
from .ledger import Ledger
from .undecided import Asked, Use, followed, typed


class Reads:
    """The record of each line that reads."""

    own: Tuple[str, ...] = ()  # parts of the paths of the framework's code
    inner: Tuple[str, ...] = ()  # functions of the framework that read for themselves what zero answers rightly

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.device = Device()
        self.asked = Asked()

    def place(self, array: Any) -> Optional[Tuple[int, int]]:
        """Where an array lies on a GPU, and its bytes; None: it lies on none."""
        raise NotImplementedError

    def kind(self, array: Any) -> Tuple[str, int]:
        """The type of its numbers (bool, int, float), and how many it has."""
        raise NotImplementedError

    def given(self, reader: str, array: Any, number: Any) -> Any:
        """What a method of that name returns, where the array has this number."""
        return number

    def wrapped(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A method of arrays that reads a number."""

        @functools.wraps(original)
        def read(array: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                answer = self._answer(array, sys._getframe(1))
            except Exception as error:
                self.ledger.agent.log("could not follow a number that is read", error)
                answer = None
            if answer is None:
                return original(array, *args, **kwargs)
            return self.given(original.__name__, array, answer)

        return read

    def _answer(self, array: Any, frame: Any) -> Optional[Any]:
        """What a check that only raises is to be given; None: zero, as the device has it."""
        place = self.place(array)
        if place is None or self.device.has(*place):
            return None
        frame = self._outside(frame)
        if frame is None:
            return None
        number, count = self.kind(array)
        use, at = followed(frame, number == "float")
        file, line, function = caller(frame)
        value = self.asked.at(file, line)
        if value is not None:
            value = typed(value, number)
            self._note(file, line, function, use, number, value, answered=True)
            return value
        if not use.kind:
            return None
        if use.passes is None or count != 1:
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

    def _note(self, file: str, line: int, function: str, use: Use, number: str, value: Any, **more: Any) -> None:
        self.ledger.note("readback", (file, line), file=file, line=line, function=function,
                         use=use.kind or "nothing", use_line=use.line, number=number, value=json.dumps(value),
                         **{"answered": False, **more})  # fmt: skip

    def _outside(self, frame: Any) -> Any:
        """The innermost frame, outwards, that is neither the framework's nor ours; None: nobody else reads."""
        while frame is not None:
            name = frame.f_code.co_filename
            if frame.f_code.co_name in self.inner:
                return None
            if "hightide_agent" not in name and not any(part in name for part in self.own):
                return frame
            frame = frame.f_back
        return None
