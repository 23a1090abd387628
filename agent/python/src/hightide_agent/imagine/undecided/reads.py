"""What the host reads and nobody knows: which lines read it, what it decides there, and what is answered.

    .item(), if mask:, .tolist() ─▶ known? ─▶ its value
                                      └ not ─▶ asked for by line (--read-value) ─▶ that
                                                └ not ─▶ follow: it decides nothing ─▶ zero, counted by the device
                                                              ├ a check that only raises ─▶ it passes
                                                              └ a size, a branch … ─▶ the verdict is conditional

Answered is the policy's share of the largest that it can be, where that is known, and else zero. A second run takes the
other end (HIGHTIDE_IMAGINE_READS), to see whether it matters.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from typing import Any, Dict, Optional, Tuple

from ...places import caller, is_library
from ..ledger import Ledger
from .asked import Asked, typed
from .follow import followed, reader
from .uses import Use

SKEWED, EVEN = "all in one place", "spread evenly"  # of what a routing sends to its experts
TURNS = 1000  # reads after which a loop that waits for a truth value gets the other one
_FORMATS = {"torch.float32": "<f", "torch.float64": "<d", "torch.float16": "<e"}


def policy() -> Tuple[str, float]:
    """The policy of data-dependent sizes, and the fraction of the upper bound that it takes."""
    text = os.environ.get("HIGHTIDE_IMAGINE_SIZES", "upper") or "upper"
    if text in ("upper", "zero"):
        return text, 1.0 if text == "upper" else 0.0
    try:
        return text, min(1.0, max(0.0, float(text)))
    except ValueError:
        return "upper", 1.0


class Reads:
    """The answers, and the record of each line that reads."""

    def __init__(self, ledger: Ledger, known: Any, torch: Any) -> None:
        self.ledger = ledger
        self.known = known
        self.torch = torch
        self.policy, self.fraction = policy()
        self.asked = asked = Asked()
        self.all, self.other, self.ones, self.flip = asked.all, asked.other, asked.ones, asked.flip
        self._turns: Dict[Tuple[str, int], int] = {}
        self._requests = False

    def of_requests(self) -> None:
        """From here on numbers are tokens of requests, for which all memory has been set aside: they are no sizes."""
        self._requests = True

    def one(self, tensor: Any) -> Optional[Any]:
        """The answer for a single number; None: zero, as the device counts it."""
        return self._tried(tensor, sys._getframe(1))

    def many(self, tensor: Any) -> Optional[Any]:
        """The answer for a tensor of whole numbers or truth values that is copied to the host: a number for all of
        them, or a list."""
        return self._tried(tensor, sys._getframe(1))

    def floats(self, tensor: Any) -> Optional[Any]:
        """As many, of floating-point numbers that the program's own line reads: libraries move and save them."""
        frame = reader(sys._getframe(1))
        return None if frame is None or is_library(frame.f_code.co_filename) else self._tried(tensor, frame)

    def _tried(self, tensor: Any, frame: Any) -> Optional[Any]:
        try:
            answer = self._answer(tensor, frame)
            if type(answer) in (int, float, bool):
                self.known.twins.say(tensor, answer)
            return answer
        except Exception as error:
            self.ledger.agent.log("could not follow a number that is read", error)
            return None

    def size(self, operator: str, guess: int, bound: Optional[int]) -> int:
        """A count that an operator takes from the device: as asked for by line, else a guess. Without a bound the
        guess decides the verdict."""
        file, line, function = self._line(sys._getframe(1))
        value = self.asked.at(file, line)
        answered = value is not None and not isinstance(value, list)
        if answered:
            guess = max(0, int(value))  # type: ignore[arg-type]
        if bound is None:
            self._note(file, line, function, Use("size", line), "int", guess, None, answered)
        return guess if bound is None else min(guess, bound)

    def _answer(self, tensor: Any, frame: Any) -> Optional[Any]:
        frame = reader(frame)
        if frame is None:
            return None
        file, line, function = self._line(frame)
        floating = tensor.dtype.is_floating_point or tensor.dtype.is_complex
        number = "float" if floating else "bool" if tensor.dtype == self.torch.bool else "int"
        use, at = followed(frame, floating)
        value = self.asked.at(file, line)
        if value is None and self.all is not None and not floating:
            value = self.all
        made_up = self._made_up(tensor) if value is None else None
        if made_up is not None and number == "int":
            if use.kind:
                self._note(file, line, function, use, "spread", EVEN if self.known.even else SKEWED, 1, False)
            return made_up
        if value is not None:
            value = typed(value, number)
            self._note(file, line, function, use, number, value, None, True)
            return value
        said = self.known.twins.said(tensor)
        if said is not None:
            return said
        if not use.kind:
            return self._share(tensor) if floating and self.ones else None
        if use.passes is not None:
            return self._checked(use, at, number, (file, line, function))
        upper = 1 if number == "bool" else None if floating else self.known.twins.most(tensor)
        if floating:
            value, more = self._compared(use, at, (file, line))
        else:
            value, more = self._chosen(number, upper, use, (file, line)), {}
        self._note(file, line, function, use, number, value, upper, False, more)
        return value

    def _share(self, tensor: Any) -> float:
        """One, or so much that each row sums to one, as probabilities do."""
        return 1.0 / max(1, tensor.shape[-1] if tensor.dim() else 1)

    def _checked(self, use: Use, frame: Any, number: str, at: Tuple[str, int, str]) -> Optional[Any]:
        """What passes a check that only raises; where the program catches that and goes on, a second run fails it."""
        passing, failing = (
            use.test.find(wanted, frame) if use.test is not None else int(wanted)
            for wanted in (bool(use.passes), not use.passes)
        )
        value = failing if use.caught and self.other else passing
        if value is None:  # it passes with zero or not
            self._note(*at, use._replace(kind="check"), number, 0, None, False)
            return None
        value = typed(value, number)
        if use.caught:
            more = {} if number == "bool" else {"other": json.dumps(failing)}
            self._note(*at, use._replace(kind="caught"), number, value, 1 if number == "bool" else None, False, more)
        return value

    def _compared(self, use: Use, frame: Any, at: Tuple[str, int]) -> Tuple[float, Dict[str, Any]]:
        """A floating-point number, and what a second run takes: where it is compared, the comparison gives the other
        thing with it. Otherwise it is not certain that the second run shows what the number can do."""
        turn = self._turns[at] = self._turns.get(at, 0) + 1
        usual = float(self.all or self.ones)
        other = use.test.other(frame, usual, turn) if use.test is not None else None
        more: Dict[str, Any] = {"other": json.dumps(1.0 if other is None else other)}
        if other is None and not (use.test is None and use.kind in ("branch", "loop")):
            more["unsure"] = True
        return (usual if not self.other or turn >= TURNS else 1.0 if other is None else other), more

    def _made_up(self, tensor: Any) -> Optional[Any]:
        """What follows from a routing that was made up; None: nothing does."""
        host = self.known.assumed(tensor)
        return None if host is None else host.tolist()

    def shared(self, count: int, total: int) -> None:
        """A mask and its opposite were both asked for, and the first one got all: a second run gives it nothing."""
        file, line, function = self._line(sys._getframe(1))
        self._note(file, line, function, Use("size", line), "share", count, total, False)

    def _chosen(self, number: str, upper: Optional[int], use: Use, at: Tuple[str, int]) -> Any:
        turn = self._turns[at] = self._turns.get(at, 0) + 1
        if number == "bool":
            other = self.other if turn < TURNS else False
            return not other if use.kind == "loop" and turn % TURNS == 0 else other
        if upper is None:
            return 1 if self.other and turn < TURNS else 0
        chosen = int(upper * self.fraction)
        return (0 if chosen else upper) if self.other and turn < TURNS else chosen

    def _line(self, frame: Any) -> Tuple[str, int, str]:
        file, line, function = caller(frame)
        nowhere = file.startswith("<") and file not in ("<string>", "<stdin>")  # programs without a file have those
        nowhere = nowhere or "/hightide_agent/" in file  # a thread of autograd: no line of the script is running
        return ("", 0, "") if nowhere else (file, line, function)

    def _note(self, file: str, line: int, function: str, use: Use, number: str, value: Any, upper: Optional[int],
              answered: bool, more: Optional[Dict[str, Any]] = None) -> None:  # fmt: skip
        if self._requests:
            return
        fields: Dict[str, Any] = {**(more or {}), "use": use.kind or "nothing", "use_line": use.line, "number": number}
        fields["value"] = json.dumps(value)
        if upper is not None:
            fields["upper"] = upper
        self.ledger.note("readback", (file, line), ("upper",), file=file, line=line, function=function,
                         answered=answered, **fields)  # fmt: skip


def bits(value: Any, dtype: Any) -> int:
    """A number as the bytes that the host finds, as an integer."""
    kind = str(dtype)
    if kind in _FORMATS:
        return int.from_bytes(struct.pack(_FORMATS[kind], float(value)), "little")
    if kind == "torch.bfloat16":
        return int.from_bytes(struct.pack("<f", float(value))[2:], "little")
    return int(value) & (2**64 - 1)
