"""Sizes that are drawn from one choice and so have a bound together: experts of a router, a mask and its opposite.

    topk, argmax of numbers that nobody knows ─▶ Route: a routing is assumed ─▶ its indices are followed as known
                                                   ones are (counts, masks, order, splits), marked as assumed
    comparison of such numbers ─▶ Coin: who is asked first gets all, the opposite the rest

Assumed is the routing that fills few experts: all rows choose those from the first one on that the program asks for.
With `--data-sizes zero`, and in the second run, rows choose one after the other in turn. Each row chooses different
ones.
"""

from __future__ import annotations

import math
from typing import Any, Dict, Optional

CHOICES = 4096  # a choice among more is not routing
LARGEST = 4 << 20  # elements of a routing
ROUTES = ("topk", "argmax", "argmin")
EXPERT = {"eq": 0, "ge": 0, "gt": 1, "isin": 0}
"""Comparisons by which a program asks for an expert, and what is to be added to what it compares with."""


class Route:
    """Which of `choices` each row of a tensor chose, `width` of them along a dimension; not made up yet."""

    __slots__ = ("choices", "dim", "dtype", "even", "shape", "stride", "width")

    def __init__(self, choices: int, width: int, dim: int, even: bool, of: Any) -> None:
        self.choices, self.width, self.dim, self.even = choices, width, dim, even
        self.shape, self.stride, self.dtype = tuple(of.shape), tuple(of.stride()), of.dtype

    def indices(self, torch: Any, first: int) -> Any:
        """The indices, as a tensor of the host."""
        shape = list(self.shape)
        rows = math.prod(shape) // max(1, self.width)
        places = torch.arange(self.width)
        if self.even:
            table = (torch.arange(rows)[:, None] * self.width + places) % self.choices
        else:
            table = ((max(0, first) + places) % self.choices).expand(rows, self.width)
        if self.dim < 0:  # the dimension is gone
            return table.reshape(shape).to(self.dtype)
        others = shape[: self.dim] + shape[self.dim + 1 :]
        return table.reshape([*others, self.width]).movedim(-1, self.dim).to(self.dtype)


def route(base: str, args: Any, more: Dict[str, Any], result: Any, even: bool) -> Optional[Route]:
    """What `result`, the indices of an operator, chose among; None: it is not routing."""
    one = args[0]
    named = dict(zip(("self", "k", "dim") if base == "topk" else ("self", "dim"), args), **more)
    dim = named.get("dim", -1 if base == "topk" else None)
    if dim is None or one.dim() < 2 or not 1 < result.numel() <= LARGEST:
        return None
    dim %= one.dim()
    choices = one.shape[dim]
    if not 1 < choices <= CHOICES:
        return None
    kept = result.dim() == one.dim()
    return Route(choices, result.shape[dim] if kept else 1, dim if kept else -1, even, result)


class Coin:
    """How many elements of a mask are true, once somebody has asked."""

    __slots__ = ("true",)

    def __init__(self) -> None:
        self.true: Optional[int] = None

    def count(self, sign: bool, chosen: int, total: int) -> int:
        """Of the mask (`sign`) or of its opposite, which has `total` elements as it; `chosen` for who asks first."""
        if self.true is None:
            self.true = chosen if sign else total - chosen
        return self.true if sign else total - self.true
