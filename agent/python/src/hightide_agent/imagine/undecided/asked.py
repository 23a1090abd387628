"""What the user, or the engine for a second run, wants to be read where nobody knows the number."""

from __future__ import annotations

import json
import os
from typing import Any, List, Optional, Tuple


class Asked:
    """HIGHTIDE_IMAGINE_READS, as docs/formats/imagined.md has it."""

    def __init__(self) -> None:
        asked = json.loads(os.environ.get("HIGHTIDE_IMAGINE_READS") or "{}")
        self.all: Optional[float] = asked.get("all")
        self.other = bool(asked.get("other"))
        self.ones = bool(asked.get("ones"))  # floats are ones, or rows that sum to one: the program failed over zeros
        self.flip = bool(asked.get("flip"))  # of a mask and its opposite, who is asked first gets nothing
        self.lines: List[Tuple[str, int, Any]] = [(a["file"], a["line"], a["value"]) for a in asked.get("lines", [])]

    def at(self, file: str, line: int) -> Optional[Any]:
        """The number that was asked for at a line; None: none was."""
        for name, wanted, value in self.lines:
            if wanted == line and (not name or file == name or file.endswith("/" + name)):
                return value
        return None


def typed(value: Any, number: str) -> Any:
    """A number as bool, int or float; of a list each."""
    if isinstance(value, list):
        return [typed(each, number) for each in value]
    return bool(value) if number == "bool" else int(value) if number == "int" else float(value)
