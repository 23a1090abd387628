"""What the model itself takes: parameters, gradients and optimizer state, storages counted once."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List

from ..training import Training
from .modules import Roots, _descendants, _own, storages

FIRST = (1, 3)  # steps whose end is looked at; then every tenfold of 10


class Model:
    """Counts at few steps, right after the optimizer's own step, when gradients are still there."""

    def __init__(self, training: Training, roots: Roots, torch: Any) -> None:
        self.agent = training.agent
        self.roots = roots
        self.steps = training.steps
        self.tensor = torch.Tensor
        self._next = 10

    def step_ended(self, step: int) -> int:
        """Count, if it is time; when it will be."""
        if step in FIRST or step >= self._next:
            if step >= self._next:
                self._next *= 10
            try:
                self.count(step)
            except Exception as error:
                self.agent.log("could not count the model's bytes", error)
        return min([first for first in FIRST if first > step] + [self._next])

    def count(self, step: int) -> None:
        """Record parameter, gradient and optimizer-state bytes of each device."""
        parameters = list(self._parameters())
        sums: Dict[str, Dict[str, int]] = {}
        for key, tensors in (
            ("parameter_bytes", iter(parameters)),
            ("gradient_bytes", (p.grad for p in parameters if p.grad is not None)),
            ("optimizer_bytes", self._state()),
        ):
            for (device, _), size in storages(tensors).items():
                of_device = sums.setdefault(device, {})
                of_device[key] = of_device.get(key, 0) + size
        for device, figures in sums.items():
            self.agent.record({"type": "model", "step": step, "device": device, **figures})

    def _parameters(self) -> Iterator[Any]:
        seen = set()
        for root in self.roots.modules():
            for module in _descendants(root):
                for parameter in _own(module, "_parameters"):
                    if id(parameter) not in seen:
                        seen.add(id(parameter))
                        yield parameter
        for optimizer in self._optimizers():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if id(parameter) not in seen:
                        seen.add(id(parameter))
                        yield parameter

    def _optimizers(self) -> List[Any]:
        """PyTorch's own: Keras has others."""
        return [o for o in self.steps.optimizers() if hasattr(o, "param_groups")]

    def _state(self) -> Iterator[Any]:
        for optimizer in self._optimizers():
            for state in list(optimizer.state.values()):
                if isinstance(state, dict):
                    for value in list(state.values()):
                        if isinstance(value, self.tensor):
                            yield value
