"""The optimizer's state in 8 bits, as bitsandbytes' own Adam8bit and AdamW8bit keep it.

Of parameters of 4096 numbers or more the two states take a byte for each number and 8 bytes for each 256 of them, in
place of 8 for each number. Smaller ones keep states of 32 bits. Numbers change: states are rounded to 256 steps. It
costs a call of bitsandbytes for each parameter. The program's optimizer stays, with its groups and learning rates, and
finds its gradients done. It is refused where bitsandbytes is not installed, where an optimizer is not torch.optim's
Adam or AdamW, has states already, or has settings that bitsandbytes does not know, and where ranks keep parts of the
parameters. A checkpoint of such a training has states of bitsandbytes; a program that loads states later is ended.
"""

from __future__ import annotations

from typing import Any, Callable, Dict

from .found import Found, Refused
from .plan import refuse
from .states_on_host import OnHost

TWINS = {"Adam": "Adam8bit", "AdamW": "AdamW8bit"}
UNKNOWN = ("amsgrad", "maximize", "capturable", "differentiable", "fused")
"""Settings that bitsandbytes' has not. Of a fused one a gradient scaler leaves the unscaling to its kernel."""


def prepare(found: Found, settings: Dict[str, Any]) -> Callable[[], str]:
    """What is returned sets hooks on the optimizers' steps, in which bitsandbytes updates the parameters."""
    optimizers = found.optimizer()
    if found.sharded:
        raise Refused("ranks keep parts of the parameters of %s, with states of their own" % found.name)
    if "states_on_host" in found.levers:
        raise Refused("states_on_host moves states of 32 bits")
    for optimizer in optimizers:
        _look(found, optimizer)
    try:
        import bitsandbytes
    except ImportError:
        raise Refused("the package bitsandbytes is not installed") from None

    def apply() -> str:
        for optimizer in optimizers:
            kind = getattr(bitsandbytes.optim, TWINS[type(optimizer).__name__])
            found.on_host[id(optimizer)] = InEightBits(found, optimizer, kind)
        return "of %s" % ", ".join(sorted({type(o).__name__ for o in optimizers}))

    return apply


def _look(found: Found, optimizer: Any) -> None:
    """Refuse an optimizer whose steps bitsandbytes' would not be, but for its rounding."""
    kind, groups = type(optimizer), optimizer.param_groups
    name = kind.__name__
    if name not in TWINS or not kind.__module__.startswith("torch.optim"):
        raise Refused("%s has no twin of 8 bits" % name)
    if optimizer.state:
        raise Refused("%s has states already" % name)
    for setting in UNKNOWN:
        if any(group.get(setting) for group in groups):
            raise Refused("%s is %s, which bitsandbytes does not know" % (name, setting))
    if any(isinstance(group[key], found.torch.Tensor) for group in groups for key in ("lr", "weight_decay")):
        raise Refused("the learning rate or weight decay of %s is a tensor" % name)
    if name == "Adam" and any(g["weight_decay"] and not g.get("decoupled_weight_decay") for g in groups):
        raise Refused("Adam adds its weight decay to the gradients, and bitsandbytes' does not")


class InEightBits(OnHost):
    """Updates the parameters of one optimizer by its twin, which has its groups and its states."""

    def __init__(self, found: Found, optimizer: Any, kind: Any) -> None:
        super().__init__(found, optimizer)
        first = next(p for group in optimizer.param_groups for p in group["params"])
        self.twin = kind([first], lr=optimizer.param_groups[0]["lr"])
        self.own = getattr(kind.step, "__wrapped__", kind.step)  # without hooks: it is no step of the program's
        if hasattr(optimizer, "register_load_state_dict_pre_hook"):
            optimizer.register_load_state_dict_pre_hook(self._loads)

    def update(self, parameter: Any, step: Callable[[Any], Any]) -> None:
        """Do the twin's step for this parameter, which the optimizer's groups have alone."""
        optimizer: Any = self.optimizer()
        self.twin.param_groups, self.twin.state = optimizer.param_groups, optimizer.state
        self.own(self.twin)

    def _loads(self, optimizer: Any, states: Any) -> None:
        refuse(
            self.agent, "states_8bit: the program loads states of %s after its first step" % type(optimizer).__name__
        )
