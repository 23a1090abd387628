"""A parameter is updated in the backward pass, once its gradient is there, and the gradient is let go.

Then never more than a few gradients are alive. Numbers stay the same bit for bit, as the same optimizer does the same
for each parameter. It costs a call of the optimizer for each parameter. It is refused where a parameter belongs to no
optimizer or to two, where an optimizer looks at several parameters together, with a gradient scaler, with wrappers that
gather gradients of several processes, and where the model is compiled. That the program clips, reads or accumulates
gradients is seen once it does so: that ends it in its first step.
"""

from __future__ import annotations

import os
import sys
import weakref
from typing import Any, Callable, Dict, List

from .found import Found, Refused
from .plan import refuse
from .set_to_none import zeroing

APART = ("Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD")
"""Optimizers of torch.optim that update each parameter from its own gradient and state alone."""
AGENT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
GATHERS = ("DistributedDataParallel", "FullyShardedDataParallel", "DeepSpeedEngine")


def prepare(found: Found, settings: Dict[str, Any]) -> Callable[[], str]:
    """What is returned sets a hook on each parameter."""
    torch, optimizers = found.torch, found.optimizer()
    if not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
        raise Refused("it needs PyTorch 2.1 or newer")
    if found.compiled:
        raise Refused("%s is compiled" % found.name)
    if any(type(m).__name__ in GATHERS or type(m).__name__.startswith("FSDP") for m in found.called.modules()):
        raise Refused("gradients of several processes are put together before the step")
    owner: Dict[int, Any] = {}
    for optimizer in optimizers:
        kind = type(optimizer)
        if kind.__name__ not in APART or not kind.__module__.startswith("torch.optim"):
            raise Refused("%s is not known to update each parameter by itself" % kind.__name__)
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if id(parameter) in owner:
                    raise Refused("a parameter belongs to two optimizers")
                owner[id(parameter)] = optimizer
    parameters = [(n, p) for n, p in found.model.named_parameters() if p.requires_grad]
    for name, parameter in parameters:
        if id(parameter) not in owner:
            raise Refused("%s belongs to no optimizer" % name)
        if parameter.grad is not None:
            raise Refused("%s has a gradient before the first step" % name)

    def apply() -> str:
        steps = {id(o): Apart(found, o) for o in optimizers}
        for _, parameter in parameters:
            parameter.register_post_accumulate_grad_hook(steps[id(owner[id(parameter)])].step)
        _watch_reads(found, list(steps.values()))

        def zeroed(parameter: Any) -> None:
            for apart in steps.values():
                apart.zeroed(parameter)

        alive = [weakref.ref(p) for _, p in parameters]  # what the program lets go of is not kept
        zeroing(found, optimizers, lambda: [r() for r in alive], zeroed)
        return "%d parameters" % len(parameters)

    return apply


class Apart:
    """Steps of an optimizer for one parameter at a time."""

    def __init__(self, found: Found, optimizer: Any) -> None:
        self.agent = found.agent
        self.on_host = found.on_host
        self.optimizer = weakref.ref(optimizer)
        self.plain = getattr(type(optimizer).step, "__wrapped__", type(optimizer).step)  # without hooks: it is no step
        self.done: Dict[int, Any] = {}
        self.ever: Dict[int, Any] = {}  # weak references: had a gradient in a step so far
        self.zeros: Dict[int, Any] = {}  # of those, whose gradient the program then zeroed
        self.stepping = False
        optimizer.register_step_pre_hook(lambda *_: self._before())
        optimizer.register_step_post_hook(lambda *_: self._after())

    def zeroed(self, parameter: Any) -> None:
        """The program zeroed gradients, and did not let them go."""
        if id(parameter) in self.ever:
            self.zeros[id(parameter)] = self.ever[id(parameter)]

    def _before(self) -> None:
        """A parameter without a gradient in this step is updated by the zeros that the program would have had."""
        for number, reference in self.zeros.items():
            parameter = reference()
            if parameter is not None and number not in self.done:
                parameter.grad = parameter.new_zeros(parameter.shape)

    def _after(self) -> None:
        for number, reference in self.zeros.items():
            parameter = reference()
            if parameter is not None and number not in self.done:
                parameter.grad = None
        self.done.clear()

    def step(self, parameter: Any) -> None:
        """The gradient of a parameter is complete: update it."""
        optimizer = self.optimizer()
        if optimizer is None:
            return
        if id(parameter) in self.done:
            refuse(self.agent, "step_in_backward: gradients are accumulated over several backward passes")
        self.done[id(parameter)] = parameter
        self.ever.setdefault(id(parameter), weakref.ref(parameter))
        groups = optimizer.param_groups
        group = next(g for g in groups if any(p is parameter for p in g["params"]))
        self.stepping = True
        try:
            optimizer.param_groups = [{**group, "params": [parameter]}]
            kept = self.on_host.get(id(optimizer))
            self.plain(optimizer) if kept is None else kept.update(parameter, self.plain)
        finally:
            optimizer.param_groups = groups
            self.stepping = False
        parameter.grad = None


def _watch_reads(found: Found, steps: List[Apart]) -> None:
    """End the program where it reads a gradient that has been let go; optimizers themselves may look."""
    kind = found.torch.nn.Parameter
    plain, agent = found.torch.Tensor.grad, found.agent

    def read(parameter: Any) -> Any:
        value = plain.__get__(parameter)
        if value is None and any(id(parameter) in apart.done and not apart.stepping for apart in steps):
            code = sys._getframe(1).f_code
            ours = code.co_filename.startswith(AGENT)  # it looks at gradients where memory ran out
            if code.co_name != "zero_grad" and "/torch/optim/" not in code.co_filename and not ours:
                refuse(agent, "step_in_backward: gradients are read by %s in %s" % (
                    code.co_name, code.co_filename.rpartition("/")[2]))  # fmt: skip
        return value

    kind.grad = property(read, plain.__set__, plain.__delete__)
