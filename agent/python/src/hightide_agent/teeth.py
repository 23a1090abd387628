"""Containers that are filled and emptied again and again, as once an epoch.

    scans ─▶ see(name, items) ─▶ Tooth(last, highest, falls)

Scans are far apart, so a container may have been fuller between them, and emptied more often.
"""

from __future__ import annotations

from typing import Any, Dict, NamedTuple

FALLS = 1  # that were seen, from which on it is told though it was never seen to grow steadily
LEAST = 8  # items of a container that is followed
MOST = 20_000  # names


class Tooth(NamedTuple):
    """What was seen of one name."""

    last: int
    highest: int
    falls: int  # to half of what it had, or less

    def told(self) -> Dict[str, Any]:
        """In words of the record; empty where it never fell."""
        return {"highest_items": self.highest, "falls": self.falls} if self.falls else {}


NONE = Tooth(0, 0, 0)


class Teeth:
    """Those of one process."""

    def __init__(self) -> None:
        self._of: Dict[Any, Tooth] = {}

    def see(self, name: Any, items: int) -> Tooth:
        """Take one reading."""
        old = self._of.get(name)
        if old is None:
            if items < LEAST or len(self._of) >= MOST:
                return NONE
            old = NONE
        fell = 2 * items <= old.last and old.last >= LEAST
        self._of[name] = new = Tooth(items, max(old.highest, items), old.falls + fell)
        return new
