"""What each block keeps, and what it costs to compute it again: of the training passes after the first step.

    forward   ─▶ at each block's beginning and end: bytes allocated, the highest since the last mark; FLOPs by operator
    backward  ─▶ where the gradient of a block's output is there, the same
    step ends ─▶ a `blocks` fact, of the pass with the highest mark, before anybody may end the program there

A program without an optimizer, which updates its weights by itself, takes no steps that are seen. Its model's next call
ends one.

Only bytes and counts are looked at, so it works where no kernel runs. FLOPs are those of torch.utils.flop_counter:
products of matrices, convolutions, attention. docs/formats/levers.md has the fact.
"""

from __future__ import annotations

import functools
from typing import Any, Dict, List, Optional, Tuple

from ..pytorch.modules import storage_bytes
from ..tracker import NEVER
from ..training import Training
from .found import Found

LAST_STEP = 3  # up to the end of which passes are recorded


class Recorded:
    """The marks of a training pass, and of the highest pass so far."""

    def __init__(self, training: Training, found: Found) -> None:
        self.training = training
        self.found = found
        self.torch = found.torch
        self.names: Dict[int, str] = {id(block): name for name, block in found.blocks().items()}
        self.recording = False
        self.marks: List[Tuple[str, str, int, int]] = []  # what, block, highest since the mark before, now
        self.flops = _counter(self.torch)
        self.cost: Dict[str, int] = {}
        self.out: Dict[str, int] = {}
        self.best: Dict[str, Any] = {}
        self.by_hand: Optional[bool] = None  # whether the program has no optimizer; not known before a backward pass
        self.passes = self.backwards = 0  # of such a program: that ended, and backward passes by then

    def install(self) -> None:
        """Wrap the forward of the model and of its blocks' classes."""
        found, agent = self.found, self.found.agent
        agent.fact("model", "%s %d" % (found.name, found.parameters()))
        if not self.torch.cuda.is_available():
            return
        for kind in {type(block) for block in found.blocks().values()}:
            self._wrap(kind)
        self._wrap_model(type(found.model))
        self.training.tracker.at_step_end.insert(0, self._step_ended)

    def _wrap_model(self, kind: Any) -> None:
        plain, model = kind.forward, self.found.model

        @functools.wraps(plain)
        def forward(called: Any, /, *args: Any, **kwargs: Any) -> Any:
            wanted = called is model and called.training and self.torch.is_grad_enabled()
            if not wanted or not 1 <= (self.training.tracker.steps_now() or self._ended_by_hand()) < LAST_STEP:
                return plain(called, *args, **kwargs)
            self._finish()
            self.recording, self.marks, self.cost, self.out = True, [], {}, {}
            self._mark("begin", "")
            with self.flops:
                before = self.flops.total
                result = plain(called, *args, **kwargs)
                self.cost[""] = self.flops.total - before
            return result

        kind.forward = forward

    def _wrap(self, kind: Any) -> None:
        plain = kind.forward

        @functools.wraps(plain)
        def forward(block: Any, /, *args: Any, **kwargs: Any) -> Any:
            name = self.names.get(id(block))
            if name is None or not self.recording:
                return plain(block, *args, **kwargs)
            self._mark("in", name)
            before = self.flops.total
            result = plain(block, *args, **kwargs)
            self.cost[name] = self.cost.get(name, 0) + self.flops.total - before
            outputs = [t for t in _tensors(self.torch, result) if t.is_cuda]
            self.out[name] = self.out.get(name, 0) + sum(t.untyped_storage().nbytes() for t in outputs)
            self._mark("out", name)
            first = next((t for t in outputs if t.requires_grad), None)
            if first is not None:
                first.register_hook(lambda _: self._mark("back", name))
            return result

        kind.forward = forward

    def _mark(self, what: str, name: str) -> None:
        if self.recording:
            cuda = self.torch.cuda
            self.marks.append((what, name, cuda.max_memory_allocated(), cuda.memory_allocated()))
            cuda.reset_peak_memory_stats()

    def _step_ended(self, step: int) -> int:
        self._finish()
        self._tell_held()
        if self.best:
            self.training.agent.fact("blocks", self.best)
        return step + 1 if step < LAST_STEP else NEVER

    def _ended_by_hand(self) -> int:
        """How many training passes a program without an optimizer has ended. Each is told, as it may be the last."""
        backwards = self.training.tracker.quick.backwards
        if backwards == self.backwards or self.by_hand is False or self.passes == LAST_STEP:
            return self.passes
        if self.by_hand is None:
            self.by_hand = not self.found.optimizers()
            if not self.by_hand:
                return 0
        self.backwards, self.passes = backwards, self.passes + 1
        self._finish()
        self._tell_held()
        if self.best:
            self.training.agent.fact("blocks", self.best)
        return self.passes

    def _tell_held(self) -> None:
        """What the training holds all along: its weights and its optimizers' states, on the device."""
        model, agent = self.found.model, self.found.agent
        states = (s for o in self.found.optimizers() for state in o.state.values() for s in _tensors(self.torch, state))
        for name, held in (("weight bytes", [*model.parameters(), *model.buffers()]), ("state bytes", list(states))):
            agent.fact(name, storage_bytes(t for t in held if t.is_cuda))

    def _finish(self) -> None:
        """The pass ends here: keep it if it is the highest."""
        if not self.recording:
            return
        self._mark("end", "")
        self.recording = False
        highest = max(mark[2] for mark in self.marks[1:])
        if highest > self.best.get("highest_bytes", 0):
            self.best = _summary(self.marks, self.cost, self.out, highest)


def _summary(
    marks: List[Tuple[str, str, int, int]], cost: Dict[str, int], out: Dict[str, int], highest: int
) -> Dict[str, Any]:
    """Blocks in the order of their first call, as lists that a record has room for: name, bytes kept, bytes of outputs,
    FLOPs, highest up to its end in the forward pass, highest in its backward pass."""
    kept: Dict[str, int] = {}
    forward: Dict[str, int] = {}
    backward: Dict[str, int] = {}
    begun, middle, end, last = 0, 0, 0, ""
    for what, name, peak, now in marks[1:]:
        if what == "in":
            begun = now
            forward[name] = max(forward.get(name, 0), peak)
        elif what == "out":
            kept[name] = kept.get(name, 0) + now - begun
            forward[name] = max(forward[name], peak)
        elif not last and what == "back":
            middle = peak
        elif last:
            backward[last] = max(backward.get(last, 0), peak)
        else:
            end = peak
        last = name if what == "back" else last
    blocks = [[n, kept[n], out[n], cost[n], forward[n], backward.get(n, 0)] for n in kept]
    return {"highest_bytes": highest, "middle_bytes": max(middle, end), "flops": cost.get("", 0), "blocks": blocks}


def _tensors(torch: Any, value: Any) -> List[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in _tensors(torch, item)]
    return []


def _counter(torch: Any) -> Any:
    """A mode that counts FLOPs, as torch.utils.flop_counter knows them."""
    from torch.utils import flop_counter
    from torch.utils._python_dispatch import TorchDispatchMode

    registry = flop_counter.flop_registry

    class Counter(TorchDispatchMode):  # type: ignore[misc]  # torch is not there when types are checked
        total = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Optional[Any] = None) -> Any:
            result = func(*args, **(kwargs or {}))
            count = registry.get(func._overloadpacket)
            if count is not None:
                self.total += count(*args, **(kwargs or {}), out_val=result)
            return result

    return Counter()
