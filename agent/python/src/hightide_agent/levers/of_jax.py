"""A plan in a program of JAX: its levers are in force from the import of JAX, before anything is traced.

    jax imported ─▶ install of each lever      what it did, in words ─▶ facts
    the first gradient is taken ─▶ the plan is applied, or refused: nothing was trained by then

A plan of PyTorch's levers is refused there too, by name, where PyTorch is not even imported.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from typing import Any, Callable, Dict, List

from . import OF_JAX, donate, remat
from .plan import refuse

Watch = Callable[[str, Callable[[Any], None]], None]


def install(agent: Any, jax: Any, watch: Watch) -> None:
    """With jax just imported."""
    levers = json.loads(os.environ.get("HIGHTIDE_PLAN") or "{}").get("levers", {})
    if levers:
        planned = Planned(agent, levers)
        if "remat" in levers:
            remat.install(jax, watch, planned.around)
        if "donate" in levers:
            donate.install(levers["donate"], watch, planned.donated, planned.refuse)
        watch("jax._src.api", planned.gradients)


class Planned:
    """What is known of a plan's levers in this process."""

    def __init__(self, agent: Any, levers: Dict[str, Any]) -> None:
        self.agent = agent
        self.levers = levers
        self.did: Dict[str, List[str]] = {name: [] for name in levers}
        self.inside = 0
        self.applied = False

    def around(self, what: str) -> None:
        """One more that is computed again, which may be known already."""
        self._told("remat", "around ", what)

    def donated(self, what: str) -> None:
        """One more function that donates arguments."""
        self._told("donate", "", what)

    def refuse(self, why: str) -> None:
        """End the program: it reads what was donated."""
        refuse(self.agent, "donate: " + why)

    def _told(self, lever: str, how: str, what: str) -> None:
        did = self.did[lever]
        if what not in did:
            did.append(what)
            self.agent.fact("lever " + lever, how + ", ".join(did))

    def gradients(self, api: Any) -> None:
        """`api`: the module whose value_and_grad calls its vjp."""
        for name in ("vjp", "_vjp"):  # by version
            original = getattr(api, name, None)
            if original is not None:
                setattr(api, name, self._around(original))

    def _around(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def vjp(*args: Any, **kwargs: Any) -> Any:
            self.inside += 1
            try:
                result = original(*args, **kwargs)
            finally:
                self.inside -= 1
            if not self.inside:
                self._check()
            return result

        return vjp

    def _check(self) -> None:
        """A gradient was taken, of all that a function computes."""
        others = [name for name in self.levers if name not in OF_JAX]
        if others:
            if "torch" not in sys.modules:
                refuse(self.agent, "%s: it is a lever of PyTorch, and this program trains with JAX" % others[0])
            return
        missing = donate.missing(self.levers.get("donate") or {}, self.did.get("donate", []))
        if missing:
            refuse(self.agent, "donate: " + missing)
        if "remat" in self.levers and not self.did["remat"]:
            refuse(self.agent, "remat: " + remat.NONE)
        if not self.applied:
            self.applied = True
            self.agent.fact("plan", "applied")
