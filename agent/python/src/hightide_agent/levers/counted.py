"""How the backward passes of a step of the optimizer add up: what `tune` holds a changed count of accumulation against.

    model called   ─▶ how many numbers its input has
    loss.backward  ─▶ what the loss is, by its graph: `mean`, `sum` or an operator, and by what it is multiplied
    step ends      ─▶ a `counted` fact of the first steps; docs/formats/levers.md has it

No number of a tensor is looked at, so it works where no kernel runs. Numbers that the program divides by are those of
Python, or of tensors of the host, that the graph keeps.
"""

from __future__ import annotations

import functools
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ..tracker import NEVER
from ..training import Training
from .found import Found

LAST_STEP = 3
THROUGH = ("ToCopyBackward0", "SqueezeBackward0", "ViewBackward0", "CloneBackward0", "UnsqueezeBackward0")
SUM, DIVIDED = "sum", "divided"
DEEPEST = 64  # nodes between the loss and what is told of it


class Counted:
    """What was seen of the step that is under way, and of those before."""

    def __init__(self, training: Training, found: Found) -> None:
        self.training = training
        self.found = found
        self.steps: List[Dict[str, Any]] = []
        self.inside = False
        self.norm = ""
        for name, module in found.model.named_modules():
            if getattr(module, "track_running_stats", False) or type(module).__name__.startswith("SyncBatch"):
                self.norm = self.norm or name
        self._begin()

    def _begin(self) -> None:
        self.step: Dict[str, Any] = {"passes": 0, "alike": True, "kept": True, "inputs": 0, "losses": []}

    def install(self) -> None:
        """Look at calls of the model, at backward passes and at ends of steps."""
        autograd = self.found.torch.autograd
        plain = autograd.backward
        self.found.called.register_forward_pre_hook(self._called, with_kwargs=True)

        @functools.wraps(plain)
        def backward(tensors: Any, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> Any:
            if self.inside:  # checkpointing has backward passes within one
                return plain(tensors, grad_tensors, *args, **kwargs)
            self._passed(tensors, grad_tensors)
            self.inside = True
            try:
                return plain(tensors, grad_tensors, *args, **kwargs)
            finally:
                self.inside = False

        autograd.backward = backward
        self.training.tracker.at_step_end.insert(0, self._ended)

    def _called(self, module: Any, args: Any, kwargs: Any) -> None:
        if module.training and self.found.torch.is_grad_enabled():
            values = [*args, *kwargs.values()]
            first = next((v for v in values if isinstance(v, self.found.torch.Tensor)), None)
            self.step["inputs"] += 0 if first is None else first.numel()

    def _passed(self, tensors: Any, grad_tensors: Any) -> None:
        step, torch = self.step, self.found.torch
        given = grad_tensors is not None and any(t is not None for t in _listed(grad_tensors))
        losses = [{"kind": DIVIDED, "scale": 1.0}] if given else []
        if not given:
            for loss in _listed(tensors):
                losses += [{"kind": k, "scale": s} for k, s in _parts(torch, loss.grad_fn, 1.0, DEEPEST)]
        if step["passes"] == 0:
            step["losses"] = losses
        else:
            step["alike"] = step["alike"] and losses == step["losses"]
            step["kept"] = step["kept"] and any(p.grad is not None for p in self.found.model.parameters())
        step["passes"] += 1

    def _ended(self, step: int) -> int:
        if step > LAST_STEP:
            return NEVER
        groups = [group for optimizer in self.found.optimizers() for group in optimizer.param_groups]
        self.step["rates"] = [group["lr"] for group in groups if isinstance(group.get("lr"), float)]
        self.steps.append(self.step)
        self._begin()
        self.found.agent.fact(
            "counted", {"norm": self.norm, "steps": list(self.steps)}
        )  # one that grows would be as before
        return step + 1 if step < LAST_STEP else NEVER


def _listed(value: Any) -> List[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _parts(torch: Any, node: Any, scale: float, left: int) -> Iterator[Tuple[str, float]]:
    """What a loss is the sum of, and by what each is multiplied."""
    while node is not None and left > 0:
        name, left = type(node).__name__, left - 1
        further = [n for n, _ in node.next_functions if n is not None]
        if name in ("MulBackward0", "DivBackward0") and len(further) == 1:
            number = _number(torch, node)
            if (number is None and name == "DivBackward0") or number == 0:
                yield DIVIDED, scale
                return
            number = 1.0 if number is None else number  # a gradient scaler's, on the device
            scale = scale * number if name == "MulBackward0" else scale / number
        elif name == "NegBackward0":
            scale = -scale
        elif name == "AddBackward0" and getattr(node, "_saved_alpha", 1) == 1:
            for one in further:
                yield from _parts(torch, one, scale, left)
            return
        elif name not in THROUGH or len(further) != 1:
            yield _kind(node, name), scale
            return
        node = further[0]
    yield DIVIDED, scale


def _number(torch: Any, node: Any) -> Optional[float]:
    """The number that an operator multiplies or divides by; None: it is on a device, or not one number."""
    other = getattr(node, "_saved_other", None)
    if other is None:
        other = getattr(node, "_saved_self", None)
    if isinstance(other, torch.Tensor):
        return float(other) if other.dim() == 0 and other.device.type == "cpu" else None
    return float(other) if isinstance(other, (int, float)) else None


def _kind(node: Any, name: str) -> str:
    """Whether it is a mean or a sum of what the samples have; else the operator's name."""
    reduction = getattr(node, "_saved_reduction", None)
    if name.startswith("MeanBackward") or reduction == 1:
        return "mean"
    return SUM if name.startswith("SumBackward") or reduction == 2 else name
