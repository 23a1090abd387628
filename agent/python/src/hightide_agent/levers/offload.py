"""Saved activations in pinned memory of the host.

What the model's forward pass saves for its backward pass goes to the host, and comes back where it is used. Numbers
stay the same bit for bit. It costs the way over PCIe, twice, and as many bytes of host memory. Parameters, buffers and
tensors below 1 MiB stay. It is refused where the model is compiled, within the program's own hooks on saved tensors,
and where parameters are gathered for its blocks (FSDP). On an imaginary GPU no kernel computes what is saved: the
host's memory is asked for, and nothing is copied.
"""

from __future__ import annotations

import functools
import os
import weakref
from typing import Any, Callable, Dict, Set, Tuple

from .found import Found, Refused, own_saved_hooks

LEAST = 1 << 20  # bytes: below, the way costs more than the memory is worth


def prepare(found: Found, settings: Dict[str, Any]) -> Callable[[], str]:
    """What is returned wraps the forward of the model's class."""
    if found.compiled:
        raise Refused("%s is compiled, and its graphs save what they want" % found.name)
    if found.sharded:
        raise Refused(
            "parameters of %s are gathered for each block, and would be moved as activations are" % found.name
        )
    if own_saved_hooks(found.torch):
        raise Refused("%s is called within the program's own hooks on saved tensors" % found.name)
    if "forward" in vars(found.model):
        raise Refused("the forward of %s was replaced by the program" % found.name)
    least = int(settings.get("least_bytes", LEAST))

    def apply() -> str:
        _wrap(found, Moved(found.torch, found.model, least))
        return "tensors of %d bytes or more" % least

    return apply


class Moved:
    """The two hooks of saved tensors, and how many bytes they moved in the step so far."""

    def __init__(self, torch: Any, model: Any, least: int) -> None:
        self.torch = torch
        self.least = least
        self.bytes = 0
        self.imagined = bool(os.environ.get("HIGHTIDE_IMAGINE"))
        self.stay: Set[int] = set()
        self.model = weakref.ref(model)

    def begin(self) -> None:
        """At each forward pass: what belongs to the model may have moved."""
        model = self.model()
        owned = [] if model is None else [*model.parameters(), *model.buffers()]
        self.stay = {t.untyped_storage().data_ptr() for t in owned}
        self.bytes = 0

    def pack(self, tensor: Any) -> Tuple[Any, Any]:
        """To the host: (device, copy), or (None, tensor) for what stays."""
        size = tensor.numel() * tensor.element_size()
        if tensor.device.type == "cpu" or tensor.layout is not self.torch.strided or size < self.least:
            return None, tensor
        if tensor.untyped_storage().data_ptr() in self.stay:
            return None, tensor
        self.bytes += size
        host = self.torch.empty(tensor.size(), dtype=tensor.dtype, layout=tensor.layout, pin_memory=True)
        if not self.imagined:
            host.copy_(tensor)
        return tensor.device, host

    def unpack(self, packed: Tuple[Any, Any]) -> Any:
        """Back to where it was."""
        device, tensor = packed
        if device is None:
            return tensor
        if self.imagined:
            return self.torch.empty_like(tensor, device=device)
        return tensor.to(device, non_blocking=True)


def _wrap(found: Found, moved: Moved) -> None:
    torch, kind, plain = found.torch, type(found.model), type(found.model).forward
    hooks, agent = torch.autograd.graph.saved_tensors_hooks, found.agent

    @functools.wraps(plain)
    def forward(called: Any, /, *args: Any, **kwargs: Any) -> Any:
        model: Any = moved.model()
        if called is not model or not called.training or not torch.is_grad_enabled():
            return plain(called, *args, **kwargs)
        moved.begin()
        with hooks(moved.pack, moved.unpack):
            result = plain(called, *args, **kwargs)
        agent.fact("offloaded bytes", moved.bytes)
        return result

    kind.forward = forward
