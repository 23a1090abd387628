"""Gradients are let go where the program zeroes them.

zero_grad(set_to_none=False) keeps the gradients' memory through the forward pass; with this it is free by then. Numbers
stay the same bit for bit: a parameter that gets no gradient in a step has zeros again when its optimizer steps. It
costs nothing. It is refused where no optimizer of the model exists.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any, Callable, Dict, List

from .found import Found


def prepare(found: Found, settings: Dict[str, Any]) -> Callable[[], str]:
    """What is returned wraps zero_grad of the optimizers and of the model, and the optimizers' step."""
    optimizers = found.optimizer()

    def apply() -> str:
        let_go: Dict[int, Any] = {}  # weak references by id: tensors compare by their numbers

        def note(parameter: Any) -> None:
            if parameter.grad is not None:
                let_go[id(parameter)] = weakref.ref(parameter)

        alive = weakref.WeakSet(optimizers)  # what the program lets go of is not kept
        zeroing(found, optimizers, lambda: [p for o in alive for p in parameters_of(o)], note)
        for optimizer in optimizers:
            optimizer.register_step_pre_hook(lambda o, *_: _zeros(found.torch, o, let_go))
        return "in zero_grad of %s" % ", ".join(sorted({type(o).__name__ for o in optimizers}))

    return apply


def zeroing(found: Found, optimizers: List[Any], chosen: Callable[[], List[Any]], note: Callable[[Any], None]) -> None:
    """Have zero_grad let gradients of the chosen parameters go. `note` is called with each whose gradient was to become
    zeros. Other parameters are zeroed as the program says."""
    for kind in {type(optimizer) for optimizer in optimizers}:
        _wrap(kind, parameters_of, chosen, note)
    _wrap(found.torch.nn.Module, lambda module: module.parameters(), chosen, note)


def parameters_of(optimizer: Any) -> List[Any]:
    """All parameters of an optimizer."""
    return [p for group in optimizer.param_groups for p in group["params"]]


def _wrap(
    kind: Any, parameters: Callable[[Any], Any], chosen: Callable[[], List[Any]], note: Callable[[Any], None]
) -> None:
    plain = kind.zero_grad

    @functools.wraps(plain)
    def zero_grad(owner: Any, set_to_none: bool = True) -> Any:
        if not set_to_none:
            ours = {id(p) for p in chosen()}
            for parameter in parameters(owner):
                if id(parameter) in ours:
                    note(parameter)
                    parameter.grad = None
        return plain(owner, set_to_none=set_to_none)

    kind.zero_grad = zero_grad


def _zeros(torch: Any, optimizer: Any, let_go: Dict[int, Any]) -> None:
    """What the program would have had: a gradient of zeros where the step gave none."""
    for parameter in parameters_of(optimizer):
        reference = let_go.get(id(parameter))
        if reference is not None and reference() is parameter and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
