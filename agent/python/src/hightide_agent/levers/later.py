"""What a plan does not reach: an optimizer that the program made after the plan was applied.

A program may replace its model or its optimizer in the middle of a run. Levers change what was there at the first
training call, so what comes later trains as it would without a plan. The report says so.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any, Callable, Dict, Optional

OF_OPTIMIZERS = ("foreach", "set_to_none", "step_in_backward", "states_on_host")
LEFT = "plan left out"


def install(fact: Callable[[str, Any], None], torch: Any, model: Any, levers: Dict[str, Any]) -> None:
    """Look at each optimizer that is made from now on, until one is beyond the plan."""
    base, left = torch.optim.Optimizer, Left(model, levers)
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
        self.named = [name for name in OF_OPTIMIZERS if name in levers]

    def text(self, optimizer: Any) -> Optional[str]:
        """What is said of an optimizer that is made now; None: the plan reaches what it trains."""
        model, kind = self.model(), type(optimizer).__name__
        ours = {id(p) for p in model.parameters()} if model is not None else set()
        trained = [p for group in getattr(optimizer, "param_groups", ()) for p in group.get("params", ())]
        if trained and not any(id(p) in ours for p in trained):
            return (
                "%s was made later, for parameters that are not of the plan's model: no lever reaches what they train"
                % kind
            )
        if trained and self.named:
            return "%s was made later: %s does not reach it" % (kind, ", ".join(self.named))
        return None
