"""Autocast to bfloat16 around the model's forward pass.

Most activations then take half. Numbers change: products are computed with 8 bits of mantissa. It is refused where
autocast is on already, where parameters are not of 32 bits, and on devices that cannot.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any, Callable, Dict

from .found import Found, Refused


def prepare(found: Found, settings: Dict[str, Any]) -> Callable[[], str]:
    """What is returned wraps the forward of the model's class."""
    torch, model = found.torch, found.model
    device = next((p.device.type for p in model.parameters()), "cpu")
    if found.compiled:
        raise Refused("%s is compiled" % found.name)
    if any(p.dtype is not torch.float32 for p in model.parameters() if p.dtype.is_floating_point):
        raise Refused("parameters of %s are not all of 32 bits" % found.name)
    if torch.is_autocast_enabled() or (device == "cpu" and getattr(torch, "is_autocast_cpu_enabled", bool)()):
        raise Refused("autocast is on already")
    if device == "cuda" and not torch.cuda.is_bf16_supported():
        raise Refused("this GPU does not compute in bfloat16")

    def apply() -> str:
        chosen, kind, plain = weakref.ref(model), type(model), type(model).forward

        @functools.wraps(plain)
        def forward(called: Any, /, *args: Any, **kwargs: Any) -> Any:
            if chosen() is not called:
                return plain(called, *args, **kwargs)
            with torch.autocast(device, dtype=torch.bfloat16):
                return plain(called, *args, **kwargs)

        kind.forward = forward
        return "around the forward of %s" % found.name

    return apply
