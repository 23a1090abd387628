"""Which optimizers of PyTorch bitsandbytes has with states of 8 bits."""

from __future__ import annotations

from typing import Any

from .found import Found, Refused

TWINS = {"Adam": "Adam8bit", "AdamW": "AdamW8bit"}
UNKNOWN = ("amsgrad", "maximize", "capturable", "differentiable")
"""Settings that bitsandbytes' has not."""


def look(found: Found, optimizer: Any) -> None:
    """Refuse an optimizer whose steps bitsandbytes' would not be, but for its rounding."""
    kind, groups = type(optimizer), optimizer.param_groups
    name = kind.__name__
    if name not in TWINS or not kind.__module__.startswith("torch.optim"):
        raise Refused("%s has no twin of 8 bits" % name)
    for setting in UNKNOWN:
        if any(group.get(setting) for group in groups):
            raise Refused("%s is %s, which bitsandbytes does not know" % (name, setting))
    if any(isinstance(group[key], found.torch.Tensor) for group in groups for key in ("lr", "weight_decay")):
        raise Refused("the learning rate or weight decay of %s is a tensor" % name)
    if name == "Adam" and any(g["weight_decay"] and not g.get("decoupled_weight_decay") for g in groups):
        raise Refused("Adam adds its weight decay to the gradients, and bitsandbytes' does not")
