"""Normal distributions that are cut: PyTorch 2.15 and newer draw again what lies beyond, until a kernel finds nothing.

    trunc_normal_ on the device ─▶ how many are expected beyond after each round ─▶ as many rounds, of the same steps

Which numbers are drawn again nobody knows here; how many rounds that takes follows from their count and the bounds.
"""

from __future__ import annotations

import functools
import inspect
import math
from typing import Any, Callable

FEW = 0.5  # numbers expected beyond the bounds, below which there are none
MOST = 64  # rounds


def install(torch: Any) -> Callable[[Any], None]:
    """For torch.nn.init, once it is there."""

    def init(module: Any) -> None:
        original = module._no_grad_trunc_normal_
        if "mask.any()" not in inspect.getsource(original):  # older ones ask the device for nothing
            return

        @functools.wraps(original)
        def draw(tensor: Any, mean: float, std: float, a: float, b: float, generator: Any = None) -> Any:
            inside = _below((b - mean) / std) - _below((a - mean) / std)
            if not tensor.is_cuda or inside <= 0.3:
                return original(tensor, mean, std, a, b, generator)
            with torch.no_grad():
                result = tensor.normal_(mean, std, generator=generator)
                mask = (result < a) | (result > b)
                for _ in range(rounds(tensor.numel(), inside)):
                    again = torch.empty_like(result).normal_(mean, std, generator=generator)
                    result = torch.where(mask, again, result)
                    del again
                    mask = (result < a) | (result > b)
                return tensor if tensor is result else tensor.copy_(result)

        module._no_grad_trunc_normal_ = draw

    return init


def rounds(count: int, inside: float) -> int:
    """How often some of `count` numbers are drawn again, of which each lies inside with this probability."""
    beyond, rounds = count * (1 - inside), 0
    while beyond >= FEW and rounds < MOST:
        beyond *= 1 - inside
        rounds += 1
    return rounds


def _below(x: float) -> float:
    return (1 + math.erf(x / math.sqrt(2))) / 2
