"""What-ifs of JAX that need no change of the script; what was done is a `switch` record.

checkpointing ─▶ jax.checkpoint around what each jax.lax.scan repeats, and layers of Flax linen (blocks.py), nnx,
                 Equinox and Haiku (layers.py)
donation      ─▶ functions that are jitted donate the arguments that HIGHTIDE_IMAGINE_DONATE names
"""

from __future__ import annotations

import functools
import json
import os
import sys
from typing import Any, Callable, Dict, List, Set, Tuple

from ...agent import Agent
from ...places import caller
from ...xla.wrapped import OWN
from . import layers
from .blocks import Blocks

Watch = Callable[[str, Callable[[Any], None]], None]


def install(agent: Agent, jax: Any, watch: Watch) -> None:
    """Throw those that are asked for."""
    wanted = {name.strip() for name in os.environ.get("HIGHTIDE_IMAGINE_SWITCH", "").split(",")}
    if "checkpointing" in wanted:
        around = _Around(agent)
        watch("jax._src.lax.control_flow.loops", lambda loops: _checkpointing(around, jax, loops))
        watch("flax.linen", lambda linen: Blocks(jax, linen, around.add).install())
        watch("flax.nnx", lambda nnx: layers.nnx(jax, nnx, around.add))
        watch("equinox", lambda equinox: layers.equinox(equinox, around.add))
        watch("haiku", lambda haiku: layers.Haiku(jax, haiku, around.add).install())
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


def _checkpointing(around: _Around, jax: Any, loops: Any) -> None:
    original = loops.scan

    @functools.wraps(original)
    def scan(f: Any, *args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        if OWN in frame.f_code.co_filename:
            return original(f, *args, **kwargs)
        file, line, _ = caller(frame)
        around.add("the body of jax.lax.scan at %s:%d" % (os.path.basename(file), line))
        return original(jax.checkpoint(f, prevent_cse=False), *args, **kwargs)

    for module in list(sys.modules.values()):  # each module that had it by name before
        name = getattr(module, "__name__", "")
        if name.startswith("jax.") and getattr(module, "scan", None) is original:
            module.scan = scan  # type: ignore[attr-defined]


def _donation(agent: Agent, pjit: Any) -> None:
    wanted: Dict[Tuple[str, int], Set[str]] = {}
    for one in json.loads(os.environ.get("HIGHTIDE_IMAGINE_DONATE", "[]")):
        wanted.setdefault((one["file"], one["line"]), set()).update(one["arguments"])
    original = pjit._parse_jit_arguments
    told: List[str] = []

    @functools.wraps(original)
    def parse(fun: Any, **kwargs: Any) -> Any:
        code: Any = getattr(fun, "__code__", None)
        names = wanted.get((code.co_filename, code.co_firstlineno)) if code is not None else None
        if names:
            given = kwargs.get("donate_argnames") or ()
            names = names.union([given] if isinstance(given, str) else given)
            kwargs["donate_argnames"] = tuple(sorted(names))
            told.append("%s of %s" % (", ".join(kwargs["donate_argnames"]), code.co_name))
            agent.record({"type": "switch", "name": "donation", "applied": True, "text": "; ".join(told)})
        return original(fun, **kwargs)

    pjit._parse_jit_arguments = parse
