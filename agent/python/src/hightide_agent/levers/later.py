"""What a plan does not reach: another model, and an optimizer that the program made after the plan was applied.

A program may train two models, or replace its model or its optimizer in the middle of a run. Levers change the model
that is called first and its optimizers, so the others train as they would without a plan. The report says so.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any, Callable, Dict, List, Optional

from .. import collected

OF_OPTIMIZERS = ("foreach", "set_to_none", "step_in_backward", "states_on_host")
LEFT = "plan left out"


def install(fact: Callable[[str, Any], None], torch: Any, model: Any, levers: Dict[str, Any]) -> None:
    """Look at the optimizers, and at each that is made from now on, until one is beyond the plan."""
    base, left = torch.optim.Optimizer, Left(model, levers)
    told = left.already(collected.of_types(collected.subclasses(base)))
    if told is not None:
        fact(LEFT, told)
        return
    plain = base.__init__

    @functools.wraps(plain)
    def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
        plain(optimizer, *args, **kwargs)
        text = left.text(optimizer)
        if text is not None:
            fact(LEFT, text)
            if base.__init__ is __init__:
                base.__init__ = plain

    base.__init__ = __init__


class Left:
    """Tells whether a plan for a model reaches an optimizer."""

    def __init__(self, model: Any, levers: Dict[str, Any]) -> None:
        self.model = weakref.ref(model)
        self.levers = levers
        self.named = [name for name in OF_OPTIMIZERS if name in levers]

    def already(self, optimizers: List[Any]) -> Optional[str]:
        """What is said of parameters that are trained beside the model's; None: there are none, or no lever."""
        model = self.model()
        if model is None or not self.levers:
            return None
        ours, name = {id(p) for p in model.parameters()}, type(model).__name__
        for optimizer in optimizers:
            other = [p for p in _trained(optimizer) if id(p) not in ours]
            if other and len(other) == len(_trained(optimizer)):
                return "%s trains another model: levers of %s and of its optimizer do not reach it" % (
                    type(optimizer).__name__, name)  # fmt: skip
            if other:
                return "%s also trains parameters that are not of %s: levers of a model reach %s alone" % (
                    type(optimizer).__name__, name, name)  # fmt: skip
        return None

    def text(self, optimizer: Any) -> Optional[str]:
        """What is said of an optimizer that is made now; None: the plan reaches what it trains."""
        model, kind = self.model(), type(optimizer).__name__
        ours = {id(p) for p in model.parameters()} if model is not None else set()
        trained = _trained(optimizer)
        if trained and not any(id(p) in ours for p in trained):
            return (
                "%s was made later, for parameters that are not of the plan's model: no lever reaches what they train"
                % kind
            )
        if trained and self.named:
            return "%s was made later: %s does not reach it" % (kind, ", ".join(self.named))
        return None


def _trained(optimizer: Any) -> List[Any]:
    """The parameters of an optimizer."""
    return [p for group in getattr(optimizer, "param_groups", ()) for p in group.get("params", ())]
