"""What was changed or made up for the script, as totals by line: each entry is a record that replaces its
predecessor in the engine. Told at once when it is new, later with each step and at the end.
"""

from __future__ import annotations

import sys
from typing import Any, Dict, Tuple

from ..agent import Agent
from ..places import caller, is_library

MAX_ENTRIES = 4000
QUIET = 64  # an entry is told anew when its count has doubled, and at the end


class Ledger:
    """The entries of this process."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._entries: Dict[Tuple[Any, ...], Dict[str, Any]] = {}
        self._told: Dict[Tuple[Any, ...], int] = {}
        agent.at_end.append(self.flush)
        agent.on_renew.append(self._forget)

    def note(self, kind: str, key: Tuple[Any, ...], most: Tuple[str, ...] = (), add: Tuple[str, ...] = (),
             **fields: Any) -> None:  # fmt: skip
        """Count one more of (kind, *key). Of `most` fields the largest is kept, `add` fields are summed."""
        try:
            self._note((kind,) + key, most, add, fields)
        except Exception as error:
            self.agent.log("could not note what was imagined", error)

    def at_line(self, kind: str, name: str, depth: int = 1, most: Tuple[str, ...] = (), **fields: Any) -> None:
        """Count one more of `kind` at the line of the user's script that is running; `op` is `name`."""
        file, line, function = caller(sys._getframe(depth + 1))
        if is_library(file):
            file, line, function = "", 0, ""  # a thread of autograd: no line of the script is running
        self.note(kind, (name, file, line), most, op=name, file=file, line=line, function=function, **fields)

    def flush(self) -> None:
        """Tell every entry whose latest count is not told."""
        for key, entry in self._entries.items():
            if self._told.get(key) != entry.get("count"):
                self._told[key] = entry.get("count", 0)
                self.agent.record(entry)

    def _note(self, key: Tuple[Any, ...], most: Tuple[str, ...], add: Tuple[str, ...], fields: Dict[str, Any]) -> None:
        entry = self._entries.get(key)
        if entry is None:
            if len(self._entries) >= MAX_ENTRIES:
                return
            entry = self._entries[key] = {"type": key[0], "count": 0}
        for name, value in fields.items():
            if name in most:
                value = max(value, entry.get(name, value))
            elif name in add:
                value = value + entry.get(name, 0)
            entry[name] = value
        entry["count"] += 1
        told = self._told.get(key, 0)
        if not told or entry["count"] >= told * 2 + QUIET:
            self._told[key] = entry["count"]
            self.agent.record(entry)

    def _forget(self) -> None:
        self._entries.clear()
        self._told.clear()
