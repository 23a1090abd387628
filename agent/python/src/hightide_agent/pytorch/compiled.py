"""Functions of torch.compile and torch.jit that are wrapped, since hooks of ours must not be inside what they make."""

from __future__ import annotations

import functools
from types import FunctionType
from typing import Any

from ..agent import Agent
from ..places import is_library
from .modules import Roots


def install(agent: Agent, roots: Roots, torch: Any) -> None:
    """Notice that something is compiled: from then on no hook of ours may be inside of it.

    Scripting, too, would compile our hooks along with the module that carries them.
    """
    if hasattr(torch, "compile"):
        compiling = torch.compile

        @functools.wraps(compiling)
        def compile(*args: Any, **kwargs: Any) -> Any:
            subject = args[0] if args else kwargs.get("model")
            if subject is not None and not _helper(subject):  # a decorator with options comes here again
                agent.fact("compile", "yes")
                roots.compiled()
            made = compiling(*args, **kwargs)
            roots.wrapped(made)
            return made

        torch.compile = compile
    scripting = torch.jit.script

    @functools.wraps(scripting)
    def script(*args: Any, **kwargs: Any) -> Any:
        agent.fact("jit", "script")
        roots.let_go()
        return scripting(*args, **kwargs)

    torch.jit.script = script


class Compiling:
    """Tells while the compiler is at work, and how many kernels it has made: for minutes, a program takes no step."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.at_work = False
        self.kernels = 0

    def callbacks(self, module: Any) -> None:
        """Of torch._dynamo.callback: called around the outermost compilation."""
        module.callback_handler.register_start_callback(lambda *_: self._tell(True))
        module.callback_handler.register_end_callback(lambda *_: self._tell(False))

    def count(self, module: Any) -> None:
        """Of torch._inductor.async_compile: each kernel in Triton passes here once."""
        original = module.AsyncCompile.triton

        @functools.wraps(original)
        def triton(*args: Any, **kwargs: Any) -> Any:
            self.kernels += 1
            if self.at_work:
                self._tell(True)
            return original(*args, **kwargs)

        module.AsyncCompile.triton = triton

    def _tell(self, at_work: bool) -> None:
        try:
            self.at_work = at_work
            self.agent.record({"type": "compiling", "compiling": at_work, "count": self.kernels})
        except Exception as error:
            self.agent.log("could not tell that PyTorch compiles", error)


def _helper(subject: Any) -> bool:
    """Whether it is a plain function of a library, as bitsandbytes compiles some when imported: no model is inside."""
    if not isinstance(subject, FunctionType) or "<locals>" in subject.__qualname__:
        return False
    return is_library(subject.__code__.co_filename)
