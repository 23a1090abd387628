"""Forward passes whose graphs no backward pass used, as those of an evaluation without no_grad.

    a root's call ends ─▶ one hook on what made its outputs ─▶ it is called: used     it is freed before that: unused

What a pass saves for backward lives as long as its result does. After the first steps the first pass since a backward
is not looked at: most steps of a training have one, and use it. Of a result that outlives a backward pass nothing is
told: that may have used the pass by another way, as by a loss that the model keeps as its attribute.
"""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from typing import Any, Dict, Iterator, Tuple

from ..places import caller
from ..training import Training

LEAST = 4  # passes of a line, from which on it is told, and at each fourfold
FIRST_STEPS = 8  # in which all passes are looked at
MAX_TENSORS = 16  # of one result
MAX_DEPTH = 3


class _Graph:
    """The hook on one pass: the graph has all that there is of it, so its end is the graph's."""

    __slots__ = ("__weakref__", "called")

    def __init__(self, called: Any) -> None:
        self.called = called

    def __call__(self, *_: Any) -> None:
        self.called(self)


class _Line:
    """What became of the passes that one line of the program began."""

    def __init__(self, place: Tuple[str, int, str], module: Any) -> None:
        self.place = place
        self.name = type(module).__name__
        self.training = module.training
        self.unused = self.used = self.held = self.most = 0
        self.next = LEAST


class Unused:
    """The passes of this process."""

    def __init__(self, training: Training, torch: Any) -> None:
        self.agent, self.tracker = training.agent, training.tracker
        self.tensor = torch.Tensor
        self.enabled = torch.is_grad_enabled
        self._forget()
        self.agent.at_end.append(self._end)
        self.agent.on_renew.append(self._forget)

    def _forget(self) -> None:
        self.lines: Dict[Tuple[str, int, str], _Line] = {}
        self._pending: Dict[Any, Tuple[_Line, Any]] = {}  # with the backward passes that had begun by then
        self._since: Any = None

    def passed(self, module: Any, result: Any) -> None:
        """A root's call ends with this result."""
        since = self._backwards()
        first, self._since = since != self._since, since
        if not self.enabled() or (first and since[0] >= FIRST_STEPS):
            return
        nodes = [node for tensor in _tensors(result, self.tensor) for node in _made_by(tensor)]
        if not nodes:
            return
        place = caller(sys._getframe(1))
        line = self.lines.setdefault(place, _Line(place, module))
        graph = _Graph(self._called)
        self._pending[weakref.ref(graph, self._freed)] = line, since
        line.held += 1
        line.most = max(line.most, line.held)
        for node in nodes[:MAX_TENSORS]:
            node.register_prehook(graph)

    def evaluates(self) -> bool:
        """Whether a line was seen whose passes no backward used."""
        return any(line.unused >= LEAST and not line.used for line in self.lines.values())

    def _backwards(self) -> Tuple[int, int, bool]:
        quick = self.tracker.quick
        return self.tracker.steps_now(), quick.backwards, quick.inside is not None

    def _called(self, graph: _Graph) -> None:
        line, _ = self._pending.pop(weakref.ref(graph, self._freed), (None, None))
        if line is not None:
            line.held -= 1
            line.used += 1

    def _freed(self, reference: Any) -> None:
        line, since = self._pending.pop(reference, (None, None))
        if line is None:
            return
        line.held -= 1
        if since != self._backwards():
            return
        line.unused += 1
        if line.unused == line.next:
            line.next *= 4
            self._tell(line)

    def _tell(self, line: _Line, held: int = 0) -> None:
        file, number, function = line.place
        mode = "train" if line.training else "eval"
        self.agent.record({"type": "unused_graphs", "file": file, "line": number, "function": function,
                           "class": line.name, "kind": mode, "count": line.unused + held, "items": line.most,
                           "used": line.used})  # fmt: skip

    def _end(self) -> None:
        now = self._backwards()
        held = Counter(line for line, since in list(self._pending.values()) if since == now)
        for line in self.lines.values():
            if line.unused + held[line] >= LEAST:
                self._tell(line, held[line])


def _tensors(value: Any, kind: Any, depth: int = 0) -> Iterator[Any]:
    if isinstance(value, kind):
        yield value
    elif depth < MAX_DEPTH:
        inner = dict.values(value) if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
        for item in inner:
            yield from _tensors(item, kind, depth + 1)


def _made_by(tensor: Any) -> Iterator[Any]:
    """The node of a tensor, and the one before it: what is done to a view in place takes the place of the first."""
    node = tensor.grad_fn
    if node is None or not hasattr(node, "register_prehook"):
        return
    yield node
    for before, _ in node.next_functions[:1]:
        if before is not None and type(before).__name__ != "AccumulateGrad":
            yield before
