"""The plan of this process, and when it is applied: at the first call, from outside, of a model that trains.

Until then Module.__call__ is ours; from then on it is what it was, so that compiled graphs have no trace of us. A plan
that cannot be applied ends the program at that call: nothing has been trained by then, and nothing is half applied.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from typing import Any, Callable, Dict, Optional

from ..training import Training
from . import LEVERS, OF_JAX, later, loaders, sites
from .found import Found, Refused

REFUSED = 3
"""The exit code of a program whose plan cannot be applied, as of any input that is wrong."""


class Plan:
    """What HIGHTIDE_PLAN says: a model, and levers with their settings. internal/levers writes it."""

    def __init__(self, text: str) -> None:
        said = json.loads(text)
        self.model: str = said.get("model", "").replace("*", "")  # a star: any
        self.parameters: int = said.get("parameters", 0)
        self.levers: Dict[str, Any] = said.get("levers", {})

    def check(self, found: Found) -> None:
        """Refuse a model that is not the plan's, and levers that nobody knows."""
        for name in self.levers:
            if name in OF_JAX:
                raise Refused("%s: it is a lever of JAX, and this program trains with PyTorch" % name)
            if name not in LEVERS:
                raise Refused("this version knows no lever %r" % name)
        if self.model and self.model != found.name:
            raise Refused("the plan is for the model %s, and this program trains %s" % (self.model, found.name))
        have = found.parameters()
        if self.parameters and have and self.parameters != have:
            raise Refused(
                "the plan is for a %s of %d parameters, and this one has %d" % (self.model, self.parameters, have)
            )

    def apply(self, found: Found) -> Dict[str, str]:
        """Apply all levers, or raise Refused before any of them; what each did, in words."""
        self.check(found)
        found.levers = frozenset(self.levers)
        ready: Dict[str, Callable[[], str]] = {}
        for name in LEVERS:
            if name in self.levers:
                try:
                    ready[name] = _lever(name).prepare(found, self.levers[name] or {})
                except Refused as error:
                    raise Refused("%s: %s" % (name, error)) from None
        return {name: apply() for name, apply in ready.items()}


def _lever(name: str) -> Any:
    module = "%s.%s" % (__package__, name)
    __import__(module)
    return sys.modules[module]


def install(training: Training, torch: Any, watch: Callable[[str, Callable[[Any], None]], None]) -> None:
    """Wait for the first training call; of levers that cut batches or change loaders, for what is made before it."""
    levers = Plan(os.environ.get("HIGHTIDE_PLAN") or "{}").levers
    loaders.install(watch, levers, training.agent, refuse)
    cut = levers.get("micro_batch")
    if cut is not None:
        from . import micro_batch

        micro_batch.install(watch, cut, refuse)
    if "fsdp" in levers:
        from . import fsdp

        fsdp.install(watch, torch, training.agent, refuse)
    Waiting(training, torch).install()


class Waiting:
    """Waits for the first training call. One of a model that is not the plan's is passed by where that one exists."""

    def __init__(self, training: Training, torch: Any) -> None:
        self.training = training
        self.agent = training.agent
        self.torch = torch
        self.inside = False
        self.done = False
        self.refused = ""

    def install(self) -> None:
        """Take Module.__call__ until then."""
        original, torch = self.torch.nn.Module.__call__, self.torch
        compiling: Callable[[], bool] = getattr(getattr(torch, "compiler", None), "is_compiling", bool)

        @functools.wraps(original)
        def __call__(module: Any, /, *args: Any, **kwargs: Any) -> Any:
            if self.done or self.inside or compiling() or not _trains(torch, module):
                return original(module, *args, **kwargs)
            self.inside = True
            try:
                self.done = self._first(module)
                if self.done and torch.nn.Module.__call__ is __call__:
                    torch.nn.Module.__call__ = original
                return original(module, *args, **kwargs)
            finally:
                self.inside = False

        # A model that is compiled before its first call keeps this function. The compiler passes by what stands in the
        # original's file, and compiles the forward inside, as it would without us.
        place = original.__code__.co_filename
        __call__.__code__ = __call__.__code__.replace(co_filename=place)  # type: ignore[attr-defined]
        torch.nn.Module.__call__ = __call__

    def _first(self, module: Any) -> bool:
        """Apply the plan to a model that is called; False: it is another model's turn."""
        if not self.refused:
            try:
                return self._begin(Found(self.torch, self.agent, module))
            except Refused as error:
                self.refused = str(error)
            except Exception as error:  # of ours: a training that is half changed must not go on
                self.agent.log("could not apply the plan", error)
                self.refused = "applying it failed: %s: %s" % (type(error).__name__, error)
        refuse(self.agent, self.refused)
        return False

    def _begin(self, found: Found) -> bool:
        plan = Plan(os.environ.get("HIGHTIDE_PLAN") or "{}")
        if plan.model and plan.model != found.name and _exists(self.torch, plan.model):
            return False
        for name, text in plan.apply(found).items():
            self.agent.fact("lever " + name, text)
        self.agent.fact("plan", "applied")
        later.install(self.agent.fact, self.torch, found.model, plan.levers)
        if os.environ.get("HIGHTIDE_BLOCKS"):
            from .recorded import Recorded

            Recorded(self.training, found).install()
        if os.environ.get("HIGHTIDE_COUNTED"):
            from .counted import Counted

            Counted(self.training, found).install()
        if sites.seen is not None:
            from . import written

            written.install(self.training, found, sites.seen)
        return True


def refuse(agent: Any, why: str) -> None:
    """End the program for a reason, which the engine tells. Also where it catches that: at the next call again."""
    agent.fact("plan refused", why)
    raise SystemExit(REFUSED)


def _trains(torch: Any, module: Any) -> bool:
    return bool(module.training and torch.is_grad_enabled() and any(p.requires_grad for p in module.parameters()))


def _exists(torch: Any, name: str) -> bool:
    """Whether another model of that class is there and trains."""
    from .. import collected

    kinds = [kind for kind in collected.subclasses(torch.nn.Module) if kind.__name__ == name]
    return any(p.requires_grad for module in collected.of_types(kinds) for p in module.parameters())


def of_block(found: Found, name: str) -> Any:
    """The block of that name; Refused where the model has none."""
    block: Optional[Any] = found.blocks().get(name)
    if block is None:
        raise Refused("%s has no block %r" % (found.name, name))
    return block
