"""Which of several statements run, and in which order: seen for a few steps, by a trace function.

    a scan finds more than one ─▶ begin: sys.settrace ─▶ some steps ─▶ end ─▶ the scan that follows asks `order`

Only the thread that trains is watched, and nobody else's tracer is replaced. A window ends early where it costs too
much: each call of a Python function is an event.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any, Callable, Dict, Iterable, List, Optional, Set, Tuple

from .growth_lines import Place

MOST_CALLS = 40_000  # of functions, in one window: about 10 ms
MOST_LINES = 20_000  # in files of the program's
MOST_SEEN = 4096  # statements in the order in which they ran


class Window:
    """Statements that are watched."""

    def __init__(self) -> None:
        self.open = False
        self._at: Dict[Tuple[str, int], Place] = {}
        self._files: Set[str] = set()
        self._seen: List[Place] = []
        self._now: Dict[int, Optional[Place]] = {}  # by the id of a frame: where its last line event came from
        self._running: List[Counter[Place]] = []  # statements that had begun: when the window began, and when it ended
        self._calls = self._lines = 0

    def begin(self, places: Iterable[Place], frame: Any) -> bool:
        """Watch from now on; False where another tracer is at work, or torch.compile, which would compile ours."""
        if self.open or sys.gettrace() is not None or _compiles():
            return False
        self._at = {(place.file, line): place for place in places for line in range(place.line, place.last + 1)}
        self._files = {place.file for place in self._at.values()}
        self._seen, self._now, self._calls, self._lines = [], {}, 0, 0
        self._running = [self._begun(frame)]
        self.open = True
        while frame is not None:
            if frame.f_code.co_filename in self._files and frame.f_trace is None:
                frame.f_trace = self._line
            frame = frame.f_back
        sys.settrace(self._call)
        return True

    def end(self, frame: Any) -> None:
        """Watch no longer."""
        if self.open:
            self._stop()
            self._running.append(self._begun(frame))

    def ran(self, places: Iterable[Place]) -> List[Place]:
        """Those of some statements that were seen to run, in the order of the text."""
        seen = {*self._seen, *(self._running[0] if self._running else ())}
        return [place for place in places if place in seen]

    def order(self, places: Iterable[Place]) -> List[Place]:
        """Each time that one of some statements ran to its end, in order. Empty where the window ended early."""
        if self.open or len(self._running) < 2 or len(self._seen) == MOST_SEEN:
            return []
        mine = set(places)
        begun, unfinished = self._running
        seen = [place for place in begun.elements() if place in mine] + [place for place in self._seen if place in mine]
        for place in unfinished.elements():
            if place in mine and place in seen:
                del seen[len(seen) - 1 - seen[::-1].index(place)]
        return seen

    def _begun(self, frame: Any) -> Counter[Place]:
        found: Counter[Place] = Counter()
        while frame is not None:
            place = self._at.get((frame.f_code.co_filename, frame.f_lineno))
            if place is not None:
                found[place] += 1
            frame = frame.f_back
        return found

    def _stop(self) -> None:
        self.open = False
        if sys.gettrace() == self._call:
            sys.settrace(None)

    def _call(self, frame: Any, event: str, argument: Any) -> Optional[Callable[..., Any]]:
        self._calls += 1
        if not self.open:
            return None
        if self._calls > MOST_CALLS or self._lines > MOST_LINES:
            self._stop()
            return None
        return self._line if frame.f_code.co_filename in self._files else None

    def _line(self, frame: Any, event: str, argument: Any) -> Optional[Callable[..., Any]]:
        if not self.open:
            return None
        if event == "line":
            self._lines += 1
            place = self._at.get((frame.f_code.co_filename, frame.f_lineno))
            if place is not None and place is not self._now.get(id(frame)) and len(self._seen) < MOST_SEEN:
                self._seen.append(place)
            self._now[id(frame)] = place
        elif event == "return":
            self._now.pop(id(frame), None)
        return self._line


def _compiles() -> bool:
    """Whether torch.compile has compiled something: it looks at each frame that runs meanwhile."""
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
    return bool(counters.get("frames"))
