"""What levers did to the program's loaders so far."""

from __future__ import annotations

from typing import Callable, Dict, List

from .found import Refused

done: Dict[str, List[str]] = {}
"""By the lever, in words."""


def applied(name: str, otherwise: str) -> Callable[[], str]:
    """What `prepare` of such a lever returns; Refused where it had nothing to change."""
    if not done.get(name):
        raise Refused(otherwise)
    return lambda: "; ".join(done[name])
