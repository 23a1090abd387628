"""The modules of a model, numbered for the edges that name them."""

from __future__ import annotations

from typing import Any

from .agent import Agent

MOST = 256  # that are described


class Modules:
    """What the channel was told of each module, in order of their numbers from 1. The first is the root."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.described: list[dict[str, Any]] = []
        self._told = 0
        agent.on_renew.append(self.forget)

    def forget(self) -> None:
        """In a forked child: its channel knows none of them yet."""
        self._told = 0

    def full(self) -> bool:
        """Whether no more are taken."""
        return len(self.described) >= MOST

    def describe(self, name: str, kind: str, parameter_bytes: int, buffer_bytes: int = 0) -> int:
        """Take one more; its number. tell() sends it."""
        number = len(self.described) + 1
        self.described.append(
            {"id": number, "name": name, "class": kind, "parameter_bytes": parameter_bytes,
             "buffer_bytes": buffer_bytes}
        )  # fmt: skip
        return number

    def tell(self) -> None:
        """Send what this process's channel does not know."""
        if self._told < len(self.described):
            self._told = len(self.described)
            self.agent.record({"type": "modules", "modules": self.described})
