"""What all elements of an operator's result are, where that is plain: no element is looked at, however many there are.

of operands whose elements are all the same      isnan(x).float().max() ─▶ 0
of numbers that a kernel computed, said finite   isinf(x), x == inf, x != x ─▶ False
of a True in an `or`, a False in an `and`
of norms, and what is made of them, which are not negative      norm < 0 ─▶ False
"""

from __future__ import annotations

import math
from typing import Any, Optional

COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")
INFINITE = ("isnan", "isinf", "isposinf", "isneginf")
EACH = frozenset((
    *COMPARED, *INFINITE, "add", "sub", "rsub", "mul", "div", "neg", "abs", "sign", "square", "sqrt", "maximum",
    "minimum", "clamp", "clamp_min", "clamp_max", "logical_and", "logical_or", "logical_xor", "logical_not",
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "__and__", "__or__", "__xor__", "clone",
    "nan_to_num", "where",
))  # fmt: skip
"""Operators each of whose elements follows from the elements at its place."""
OF_ALL = frozenset(("max", "min", "amax", "amin", "mean", "any", "all", "sum", "median"))
NORMS = frozenset(("linalg_vector_norm", "norm", "abs", "square", "exp"))
"""Operators whose result is not negative."""
UPWARDS = frozenset((
    "add", "mul", "div", "pow", "sqrt", "sum", "mean", "max", "min", "amax", "amin", "maximum", "minimum", "stack",
    "cat", "clone", "copy_", "clamp_min", "nan_to_num", "prod", "cumsum", "index", "select", "where", "masked_fill",
))  # fmt: skip
"""Those whose result is not where nothing is that they are given."""
ABSORBING = {"bitwise_or": True, "bitwise_or_": True, "logical_or": True, "bitwise_and": False, "bitwise_and_": False,
             "logical_and": False, "__or__": True, "__and__": False}  # fmt: skip


class Plain:
    """The rules, over what is known of tensors."""

    def __init__(self, twins: Any, torch: Any) -> None:
        self.twins, self.torch, self.tensor = twins, torch, torch.Tensor

    def rule(self, operator: Any, base: str, args: Any, more: Any, known: bool) -> Optional[Any]:
        """The value; None: it depends, or is not plain. `known`: the first operand's numbers are, and are looked at."""
        one, other = args[0], args[1] if len(args) > 1 else None
        if base in ("fill_", "zero_"):
            value = other if base == "fill_" else 0
            return value if isinstance(value, (int, float)) and self.twins.whole(one) else None
        if not isinstance(one, self.tensor):
            return None
        value = self._everywhere(operator, base, args, more)
        if value is not None:
            return value
        if base in ABSORBING:
            rule = ABSORBING[base]
            if rule in (self._constant(one), self._constant(other)) and one.dtype == self.torch.bool:
                return rule
        return None if known else self._finite(base, one, other)

    def not_negative(self, base: str, args: Any) -> bool:
        """Whether no element of the result is below zero."""
        if base in NORMS:
            return True
        if base.rstrip("_") not in UPWARDS and base != "copy_":
            return False
        if base == "copy_":
            return self._upwards(args[1])
        if base.startswith("masked_fill") and self._constant(args[1]) is False:
            return self._upwards(args[0])
        of = [a for a in args if not (isinstance(a, self.tensor) and a.dtype == self.torch.bool)]  # but for masks
        return (
            all(map(self._upwards, of))
            if base.startswith(("stack", "cat", "where"))
            else all(self._upwards(a) for a in args[:2])
        )

    def _upwards(self, value: Any) -> bool:
        if isinstance(value, (list, tuple)):
            return bool(value) and all(map(self._upwards, value))
        if not isinstance(value, self.tensor):
            return value is None or (isinstance(value, (int, float)) and value >= 0)
        constant = self.twins.constant_of(value)
        return constant >= 0 if constant is not None else bool(value.is_cuda and self.twins.is_upwards(value))

    def _finite(self, base: str, one: Any, other: Any) -> Optional[bool]:
        """Of numbers none of which is a NaN or infinite."""
        if base in INFINITE:
            return False
        if base not in COMPARED:
            return None
        below = isinstance(other, (int, float)) and (other < 0 or (other == 0 and base in ("lt", "ge")))
        if below and self._upwards(one):
            return base in ("ge", "gt", "ne")
        if isinstance(other, float) and not math.isfinite(other):
            if math.isnan(other):
                return base == "ne"
            return {"eq": False, "ne": True, "lt": other > 0, "le": other > 0, "gt": other < 0, "ge": other < 0}[base]
        return base in ("eq", "le", "ge") if self._same(one, other) else None

    def _everywhere(self, operator: Any, base: str, args: Any, more: Any) -> Optional[Any]:
        """Of operands whose elements are all the same: the operator on one element of each."""
        if base == "copy_":
            value = self._constant(args[1])
            if value is None or not self.twins.whole(args[0]):
                return None
            return self._one(args[1], value).to(args[0].dtype).item()
        plain = base[:-1] if base.endswith("_") and not base.endswith("__") else base
        reduces = base in OF_ALL and len(args) == 1
        if not reduces and plain not in EACH:
            return None
        ones = []
        for arg in args:
            if not isinstance(arg, self.tensor):
                ones.append(arg)
                continue
            value = self._constant(arg)
            if value is None:
                return None
            ones.append(self._one(arg, value))
        try:
            value = operator(*ones, **{k: v for k, v in more.items() if k not in ("device", "pin_memory", "layout")})
        except Exception:  # of a type that the host has no kernel for
            return None
        value = value.item() if isinstance(value, self.tensor) and value.numel() == 1 else None
        return value * args[0].numel() if base == "sum" and value is not None else value

    def _one(self, tensor: Any, value: Any) -> Any:
        return self.torch.full((1,) * tensor.dim(), value, dtype=tensor.dtype)

    def _constant(self, value: Any) -> Optional[Any]:
        return self.twins.constant_of(value) if isinstance(value, self.tensor) else value

    def _same(self, one: Any, other: Any) -> bool:
        if not (isinstance(one, self.tensor) and isinstance(other, self.tensor)):
            return False
        return one is other or bool(
            one.is_cuda and other.is_cuda and one.data_ptr() == other.data_ptr() and one.dtype == other.dtype
            and one.shape == other.shape and one.stride() == other.stride()
        )  # fmt: skip
