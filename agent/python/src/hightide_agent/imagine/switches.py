"""What-ifs that need no change of the script: mixed precision, activation checkpointing, another kernel of attention.

Each is applied at the first call from outside of a module that has parameters on a device and trains, which is where
a script would have done it. What was done, or why not, is a `switch` record.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Callable, Dict

from ..agent import Agent
from ..serving import ENGINE
from .ledger import Ledger


def install(agent: Agent, ledger: Ledger, parts: Any, watch: Callable[[str, Callable[[Any], None]], None]) -> None:
    """Wait for the model's first call."""
    torch = parts.torch
    wanted = {name.strip() for name in os.environ.get("HIGHTIDE_IMAGINE_SWITCH", "").split(",") if name.strip()}
    for name in sorted(wanted - {"bf16", "checkpointing"}):
        if name.startswith(ENGINE):  # what an adapter of a server's engine sets
            continue
        if name.partition(":")[0] != "attention" or name.partition(":")[2] not in ATTENTION:
            agent.record({"type": "switch", "name": name, "applied": False, "text": "not known to this agent"})
            continue
        _attention(torch, name.partition(":")[2])
        agent.record({"type": "switch", "name": name, "applied": True, "text": "the others are switched off"})
    if not wanted & {"bf16", "checkpointing"}:
        return
    told: Dict[str, bool] = {}
    original = torch.nn.Module.__call__
    depth = [0]

    def tell(name: str, applied: bool, text: str) -> None:
        if not told.get(name):
            told[name] = applied
            agent.record({"type": "switch", "name": name, "applied": applied, "text": text})

    def first(module: Any) -> None:
        if "checkpointing" in wanted and not told.get("checkpointing"):
            text = _checkpointing(module)
            tell("checkpointing", bool(text), text or "%s offers none" % type(module).__name__)

    @functools.wraps(original)
    def __call__(module: Any, /, *args: Any, **kwargs: Any) -> Any:
        if depth[0] or torch.compiler.is_compiling() or not _on_device(module):
            return original(module, *args, **kwargs)
        depth[0] = 1
        try:
            if module.training:
                first(module)
            if "bf16" not in wanted:
                return original(module, *args, **kwargs)
            tell("bf16", True, "autocast to bfloat16 around %s" % type(module).__name__)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                return original(module, *args, **kwargs)
        finally:
            depth[0] = 0

    torch.nn.Module.__call__ = __call__


ATTENTION = {"flash": "flash", "efficient": "mem_efficient", "math": "math", "cudnn": "cudnn"}


def _attention(torch: Any, kind: str) -> None:
    """Switch off the other kernels of scaled_dot_product_attention; the plain one stays as a way out."""
    for name, word in ATTENTION.items():
        enable = getattr(torch.backends.cuda, "enable_%s_sdp" % word, None)
        if enable is not None:
            enable(name in (kind, "math"))


def _on_device(module: Any) -> bool:
    parameter = next(module.parameters(), None)
    return parameter is not None and parameter.is_cuda


def _checkpointing(module: Any) -> str:
    """Switch on what the model offers: transformers' and timm's own ways. The text says how; "" if it offers none."""
    for inner in module.modules():
        if getattr(inner, "supports_gradient_checkpointing", False) and hasattr(inner, "gradient_checkpointing_enable"):
            inner.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
            return "gradient_checkpointing_enable() of %s" % type(inner).__name__
        if hasattr(inner, "set_grad_checkpointing"):
            inner.set_grad_checkpointing(True)
            return "set_grad_checkpointing() of %s" % type(inner).__name__
    return ""
