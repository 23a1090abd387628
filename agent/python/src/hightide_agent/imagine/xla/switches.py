"""What-ifs of JAX that need no change of the script; what was done is a `switch` record.

checkpointing ─▶ jax.checkpoint around what the program repeats (xla/again.py)
donation      ─▶ functions that are jitted donate the arguments that HIGHTIDE_IMAGINE_DONATE names
"""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Dict, List, Set, Tuple

from ...agent import Agent
from ...xla import again, donating

Watch = Callable[[str, Callable[[Any], None]], None]


def install(agent: Agent, jax: Any, watch: Watch) -> None:
    """Throw those that are asked for."""
    wanted = {name.strip() for name in os.environ.get("HIGHTIDE_IMAGINE_SWITCH", "").split(",")}
    planned = json.loads(os.environ.get("HIGHTIDE_PLAN") or "{}").get("levers", {})
    if "checkpointing" in wanted and "remat" not in planned:  # which does so already
        around = _Around(agent)
        again.install(jax, watch, around.add)
    if "donation" in wanted:
        watch("jax._src.pjit", lambda pjit: _donation(agent, pjit))


class _Around:
    """What is given to jax.checkpoint, as one record says."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._all: List[str] = []

    def add(self, what: str) -> None:
        """One more, which may be known already."""
        if what not in self._all:
            self._all.append(what)
            text = "around %s" % ", ".join(self._all)
            self.agent.record({"type": "switch", "name": "checkpointing", "applied": True, "text": text})


def _donation(agent: Agent, pjit: Any) -> None:
    wanted: Dict[Tuple[str, int], Set[str]] = {}
    for one in json.loads(os.environ.get("HIGHTIDE_IMAGINE_DONATE", "[]")):
        wanted.setdefault((one["file"], one["line"]), set()).update(one["arguments"])
    told: List[str] = []

    def tell(name: str, arguments: List[str]) -> None:
        told.append("%s of %s" % (", ".join(arguments), name))
        agent.record({"type": "switch", "name": "donation", "applied": True, "text": "; ".join(told)})

    donating.install(pjit, lambda code: wanted.get((code.co_filename, code.co_firstlineno), ()), tell)
