"""What-ifs that need no change of the script: mixed precision, activation checkpointing, another kernel of attention,
no graphs of a line's passes.

Each is a row of SWITCHES. What is done at calls is done at calls from outside of a module that has parameters on a
device, which is where a script would have done it. What was done, or why not, is a `switch` record.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from typing import Any, Callable, ContextManager, Dict, List

from ..agent import Agent
from ..places import caller
from ..serving import ENGINE

Tell = Callable[[bool, str], None]  # whether the switch was applied, and how, or why not


class Calls:
    """What is done at calls of modules: `training` before one that trains, `around` around each."""

    def __init__(self) -> None:
        self.training: List[Callable[[Any], None]] = []
        self.around: List[Callable[[Any], ContextManager[Any]]] = []

    def install(self, torch: Any) -> None:
        """Have it done, where there is anything."""
        if not self.training and not self.around:
            return
        original, inside = torch.nn.Module.__call__, [False]

        @functools.wraps(original)
        def __call__(module: Any, /, *args: Any, **kwargs: Any) -> Any:
            if inside[0] or torch.compiler.is_compiling() or not _on_device(module):
                return original(module, *args, **kwargs)
            inside[0] = True
            try:
                with contextlib.ExitStack() as stack:
                    for before in self.training if module.training else ():
                        before(module)
                    for around in self.around:
                        stack.enter_context(around(module))
                    return original(module, *args, **kwargs)
            finally:
                inside[0] = False

        torch.nn.Module.__call__ = __call__


def _attention(torch: Any, kind: str, tell: Tell, calls: Calls) -> None:
    """Switch off the other kernels of scaled_dot_product_attention; the plain one stays as a way out."""
    if kind not in ATTENTION:
        tell(False, "not known to this agent")
        return
    for name, word in ATTENTION.items():
        enable = getattr(torch.backends.cuda, "enable_%s_sdp" % word, None)
        if enable is not None:
            enable(name in (kind, "math"))
    tell(True, "the others are switched off")


def _bf16(torch: Any, _: str, tell: Tell, calls: Calls) -> None:
    """Mixed precision around each call."""

    def around(module: Any) -> ContextManager[Any]:
        tell(True, "autocast to bfloat16 around %s" % type(module).__name__)
        return torch.autocast("cuda", dtype=torch.bfloat16)  # type: ignore[no-any-return]

    calls.around.append(around)


def _checkpointing(torch: Any, _: str, tell: Tell, calls: Calls) -> None:
    """Recompute activations in the first module that offers it."""
    done: List[str] = []

    def training(module: Any) -> None:
        if not done:
            done.extend(filter(None, [_checkpoints(module)]))
            tell(bool(done), done[0] if done else "%s offers none" % type(module).__name__)

    calls.training.append(training)


def _no_grad(torch: Any, line: str, tell: Tell, calls: Calls) -> None:
    """No graph of what this line calls: `file.py:12`."""

    def around(module: Any) -> ContextManager[Any]:
        file, number, _ = caller(sys._getframe())
        if "%s:%d" % (os.path.basename(file), number) != line:
            return contextlib.nullcontext()
        tell(True, "%s called under no_grad" % type(module).__name__)
        return torch.no_grad()  # type: ignore[no-any-return]

    calls.around.append(around)


SWITCHES = {"attention": _attention, "bf16": _bf16, "checkpointing": _checkpointing, "no_grad": _no_grad}

ATTENTION = {"flash": "flash", "efficient": "mem_efficient", "math": "math", "cudnn": "cudnn"}


def install(agent: Agent, torch: Any) -> None:
    """Throw those that are asked for."""
    calls = Calls()
    for name in sorted(filter(None, map(str.strip, os.environ.get("HIGHTIDE_IMAGINE_SWITCH", "").split(",")))):
        if name.startswith(ENGINE):  # what an adapter of a server's engine sets
            continue
        kind, _, value = name.partition(":")
        SWITCHES.get(kind, _unknown)(torch, value, _teller(agent, name), calls)
    calls.install(torch)


def _unknown(torch: Any, _: str, tell: Tell, calls: Calls) -> None:
    tell(False, "not known to this agent")


def _teller(agent: Agent, name: str) -> Tell:
    """Records what became of a switch, each answer once."""
    told: Dict[str, bool] = {}

    def tell(applied: bool, text: str) -> None:
        if not any(told.values()) and text not in told:
            told[text] = applied
            agent.record({"type": "switch", "name": name, "applied": applied, "text": text})

    return tell


def _on_device(module: Any) -> bool:
    parameter = next(module.parameters(), None)
    return parameter is not None and parameter.is_cuda


def _checkpoints(module: Any) -> str:
    """Switch on what the model offers: transformers' and timm's own ways. The text says how; "" if it offers none."""
    for inner in module.modules():
        if getattr(inner, "supports_gradient_checkpointing", False) and hasattr(inner, "gradient_checkpointing_enable"):
            inner.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
            return "gradient_checkpointing_enable() of %s" % type(inner).__name__
        if hasattr(inner, "set_grad_checkpointing"):
            inner.set_grad_checkpointing(True)
            return "set_grad_checkpointing() of %s" % type(inner).__name__
    return ""
