"""Installing a part, so that trouble with it costs only that one."""

from __future__ import annotations

TYPE_CHECKING = False  # for type checkers only: importing typing takes longer than all the rest of the start
if TYPE_CHECKING:
    from typing import Callable

    from ..agent import Agent


def part(agent: Agent, name: str, install: Callable[[], None]) -> None:
    """Install one part of what is imagined; what goes wrong is logged."""
    try:
        install()
    except Exception as error:
        agent.log("imagine: no %s" % name, error)
