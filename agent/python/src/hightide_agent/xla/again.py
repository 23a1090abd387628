"""jax.checkpoint around what a program repeats: what it computes is computed again in the backward pass.

each jax.lax.scan ─▶ its body          layers of Flax linen ─▶ blocks.py          nnx, Equinox, Haiku ─▶ layers.py
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Callable

from ..places import caller
from . import layers
from .blocks import Blocks
from .wrapped import OWN

Watch = Callable[[str, Callable[[Any], None]], None]
Told = Callable[[str], None]


def install(jax: Any, watch: Watch, told: Told) -> None:
    """For all that is traced from here on. `told` gets each in words, more than once."""
    watch("jax._src.lax.control_flow.loops", lambda loops: _scans(jax, loops, told))
    watch("flax.linen", lambda linen: Blocks(jax, linen, told).install())
    watch("flax.nnx", lambda nnx: layers.nnx(jax, nnx, told))
    watch("equinox", lambda equinox: layers.equinox(equinox, told))
    watch("haiku", lambda haiku: layers.Haiku(jax, haiku, told).install())


def _scans(jax: Any, loops: Any, told: Told) -> None:
    original = loops.scan

    @functools.wraps(original)
    def scan(f: Any, *args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        if OWN in frame.f_code.co_filename:
            return original(f, *args, **kwargs)
        file, line, _ = caller(frame)
        told("the body of jax.lax.scan at %s:%d" % (os.path.basename(file), line))
        return original(jax.checkpoint(f, prevent_cse=False), *args, **kwargs)

    for module in list(sys.modules.values()):  # each module that had it by name before
        name = getattr(module, "__name__", "")
        if name.startswith("jax.") and getattr(module, "scan", None) is original:
            module.scan = scan  # type: ignore[attr-defined]
