"""The optimizer's state in 8 bits, as bitsandbytes' own Adam8bit and AdamW8bit keep it.

Of parameters of 4096 numbers or more the two states take a byte for each number and 8 bytes for each 256 of them, in
place of 8 for each number. Smaller ones keep states of 32 bits. Numbers change: states are rounded to 256 steps. It
costs a call of bitsandbytes for each parameter. The program's optimizer stays, with its groups and learning rates, and
finds its gradients done. It is refused where bitsandbytes is not installed, where an optimizer is not torch.optim's
Adam or AdamW, has states already, or has settings that bitsandbytes does not know, and where ranks keep parts of the
parameters. A checkpoint of such a training has states of bitsandbytes; a program that loads states later is ended, and
so is one whose gradient scaler leaves the unscaling to the kernel of a fused optimizer. As the Trainer of transformers
does, embeddings keep states of 32 bits under it.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, Set

from .. import collected
from .found import Found, Refused
from .plan import refuse
from .states_on_host import OnHost
from .twins import TWINS, look


def prepare(found: Found, settings: Dict[str, Any]) -> Callable[[], str]:
    """What is returned sets hooks on the optimizers' steps, in which bitsandbytes updates the parameters."""
    optimizers = found.optimizer()
    if found.sharded:
        raise Refused("ranks keep parts of the parameters of %s, with states of their own" % found.name)
    if "states_on_host" in found.levers:
        raise Refused("states_on_host moves states of 32 bits")
    for optimizer in optimizers:
        look(found, optimizer)
        if optimizer.state:
            raise Refused("%s has states already" % type(optimizer).__name__)
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


class InEightBits(OnHost):
    """Updates the parameters of one optimizer by its twin, which has its groups and its states."""

    def __init__(self, found: Found, optimizer: Any, kind: Any) -> None:
        super().__init__(found, optimizer)
        first = next(p for group in optimizer.param_groups for p in group["params"])
        self.twin = kind([first], lr=optimizer.param_groups[0]["lr"])
        self.wide = _wide(found)
        self.own = getattr(kind.step, "__wrapped__", kind.step)  # without hooks: it is no step of the program's
        if hasattr(optimizer, "register_load_state_dict_pre_hook"):
            optimizer.register_load_state_dict_pre_hook(self._loads)

    def update(self, parameter: Any, step: Callable[[Any], Any]) -> None:
        """Do the twin's step for this parameter, which the optimizer's groups have alone."""
        optimizer: Any = self.optimizer()
        if getattr(optimizer, "grad_scale", None) is not None:
            refuse(self.agent, "states_8bit: a gradient scaler leaves the unscaling to the kernel of a fused optimizer")
        self.twin.args.optim_bits = 32 if id(parameter) in self.wide else 8
        self.twin.param_groups, self.twin.state = optimizer.param_groups, optimizer.state
        self.own(self.twin)

    def _loads(self, optimizer: Any, states: Any) -> None:
        refuse(
            self.agent, "states_8bit: the program loads states of %s after its first step" % type(optimizer).__name__
        )


def _wide(found: Found) -> Set[int]:
    """The embeddings, by id, where the Trainer of transformers keeps their states in 32 bits."""
    trainer = getattr(sys.modules.get("transformers.trainer"), "Trainer", None)
    if trainer is None or not collected.of_types([trainer, *collected.subclasses(trainer)]):
        return set()
    return {id(m.weight) for m in found.model.modules() if isinstance(m, found.torch.nn.Embedding)}
