"""Arguments of a function that is wrapped: a call gives each by position or by name, and the wrapper takes both."""

from __future__ import annotations

TYPE_CHECKING = False  # for type checkers only: see ending.py
if TYPE_CHECKING:
    from typing import Any, Dict, Tuple


def given(args: Tuple[Any, ...], kwargs: Dict[str, Any], at: int, name: str, default: Any = None) -> Any:
    """The argument that has this position and this name."""
    return args[at] if len(args) > at else kwargs.get(name, default)


def instead(
    args: Tuple[Any, ...], kwargs: Dict[str, Any], at: int, name: str, value: Any
) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """The arguments of a call with another value for one that may be missing."""
    if len(args) > at:
        return (*args[:at], value, *args[at + 1 :]), kwargs
    return args, {**kwargs, name: value}
