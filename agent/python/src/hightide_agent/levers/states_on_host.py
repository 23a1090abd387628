"""The optimizer's state in pinned memory of the host.

The state of one parameter at a time is on the device, while that parameter is updated. Numbers stay the same bit for
bit, as the same optimizer does the same for each parameter. It costs the way over PCIe, twice, as many bytes of host
memory, and a call of the optimizer for each parameter. It is refused where parameters are gathered for the blocks
(FSDP, DeepSpeed), where an optimizer looks at several parameters together or is capturable, and before PyTorch 2.1. On
an imaginary GPU the host's memory is asked for, and nothing is copied.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

from .found import Found, Refused
from .step_in_backward import APART

FACT = "moved state bytes"


def prepare(found: Found, settings: Dict[str, Any]) -> Callable[[], str]:
    """What is returned sets hooks on the optimizers' steps."""
    torch, optimizers = found.torch, found.optimizer()
    if not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
        raise Refused("it needs PyTorch 2.1 or newer")
    if found.sharded:
        raise Refused("ranks keep parts of the parameters of %s, with states of their own" % found.name)
    for optimizer in optimizers:
        kind = type(optimizer)
        if kind.__name__ not in APART or not kind.__module__.startswith("torch.optim"):
            raise Refused("%s is not known to update each parameter by itself" % kind.__name__)
        if any(group.get("capturable") or group.get("differentiable") for group in optimizer.param_groups):
            raise Refused("%s is capturable or differentiable" % kind.__name__)

    def apply() -> str:
        for optimizer in optimizers:
            found.on_host[id(optimizer)] = OnHost(found, optimizer)
        return "of %s" % ", ".join(sorted({type(o).__name__ for o in optimizers}))

    return apply


class OnHost:
    """The states of one optimizer. The update is made before its step, which then finds no gradient."""

    def __init__(self, found: Found, optimizer: Any) -> None:
        self.torch, self.agent = found.torch, found.agent
        self.optimizer = weakref.ref(optimizer)
        self.plain = getattr(type(optimizer).step, "__wrapped__", type(optimizer).step)  # without hooks: it is no step
        self.imagined = bool(os.environ.get("HIGHTIDE_IMAGINE"))
        self.homes: Dict[Tuple[int, str], Any] = {}  # host tensors by parameter and name
        self.aside: List[Tuple[Any, Any]] = []  # gradients, while the optimizer's own step runs
        self.bytes = self.told = 0
        optimizer.register_step_pre_hook(self._before)
        handle = optimizer.register_step_post_hook(lambda *_: self._after())
        optimizer._optimizer_step_post_hooks.move_to_end(handle.id, last=False)  # the program's find the gradients

    def _before(self, optimizer: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[Any]:
        """Update all parameters, or have the closure do it once it has made their gradients."""
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if closure is None:
            self._all(optimizer)
            return None

        def closed() -> Any:
            loss = closure()
            self._all(optimizer)
            return loss

        return (optimizer, closed), {}

    def _all(self, optimizer: Any) -> None:
        gradient = self.torch.Tensor.grad  # not the parameter's: another lever watches who reads it
        groups = optimizer.param_groups
        for group in groups:
            for parameter in group["params"]:
                if gradient.__get__(parameter) is None:
                    continue
                try:
                    optimizer.param_groups = [{**group, "params": [parameter]}]
                    self.update(parameter, self.plain)
                finally:
                    optimizer.param_groups = groups
                self.aside.append((parameter, gradient.__get__(parameter)))
                parameter.grad = None

    def _after(self) -> None:
        for parameter, gradient in self.aside:
            parameter.grad = gradient
        self.aside = []
        if self.bytes != self.told:
            self.agent.fact(FACT, self.bytes)
        self.told, self.bytes = self.bytes, 0

    def update(self, parameter: Any, step: Callable[[Any], Any]) -> None:
        """Do a step of the optimizer, whose groups have this parameter alone, with its state on the device."""
        optimizer: Any = self.optimizer()
        here = optimizer.state.get(parameter, {})
        for name, value in here.items():
            if self.homes.get((id(parameter), name)) is value:
                here[name] = self._here(value, parameter.device)
        step(optimizer)
        here = optimizer.state.get(parameter, {})
        for name, value in here.items():
            if self.moves(parameter, value):
                here[name] = self._away((id(parameter), name), value)

    def moves(self, parameter: Any, value: Any) -> bool:
        """Whether a part of its state is moved; a step that an optimizer counts on the host is there already."""
        return isinstance(value, self.torch.Tensor) and value.device.type != "cpu"

    def _here(self, host: Any, device: Any) -> Any:
        if self.imagined:
            return self.torch.empty_like(host, device=device)
        return host.to(device, non_blocking=True, copy=True)

    def _away(self, place: Tuple[int, str], value: Any) -> Any:
        host = self.homes.get(place)
        if host is None or host.shape != value.shape or host.dtype != value.dtype or host.stride() != value.stride():
            host = self.torch.empty_like(value, device="cpu", pin_memory=value.device.type == "cuda")
            self.homes[place] = host
        if not self.imagined:
            host.copy_(value)
        self.bytes += value.numel() * value.element_size()
        return host
