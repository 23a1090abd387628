"""Named functions of torch that have no hook and are wrapped instead."""

from __future__ import annotations

import functools
from typing import Any, Callable

from .. import oom
from ..agent import Agent
from ..tracker import BACKWARD, CHECKPOINT, Tracker
from .modules import Roots


def phase(tracker: Tracker, number: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a rarely called function so that a phase is entered before it and left after it, however it ends."""

    @functools.wraps(function)
    def in_phase(*args: Any, **kwargs: Any) -> Any:
        tracker.resume()
        entered = not tracker.inside(number) and tracker.enter(number)
        try:
            return function(*args, **kwargs)
        finally:
            if entered:
                tracker.leave(number)

    return in_phase


def backward(tracker: Tracker, torch: Any) -> None:
    """Mark backward passes and count them. Tensor.backward calls this one, by its name in torch.autograd."""
    original = torch.autograd.backward
    calm = tracker.calm

    @functools.wraps(original)
    def backward(*args: Any, **kwargs: Any) -> Any:
        if calm.inside:  # one inside another: checkpointing
            return original(*args, **kwargs)
        calm.inside = True
        entered = not calm.lead and tracker.enter(BACKWARD)
        try:
            return original(*args, **kwargs)
        except (MemoryError, RuntimeError) as error:
            oom.notice(tracker.agent, error, tracker.steps_now())
            raise
        finally:
            calm.inside = False
            calm.backwards += 1
            if entered:
                tracker.leave(BACKWARD)

    torch.autograd.backward = backward


def save(tracker: Tracker, torch: Any) -> None:
    """Mark the writing of checkpoints."""
    torch.save = torch.serialization.save = phase(tracker, CHECKPOINT, torch.save)


def compile(agent: Agent, roots: Roots, torch: Any) -> None:
    """Notice that something is compiled: from then on no hook of ours may be inside of it.

    Scripting, too, would compile our hooks along with the module that carries them.
    """
    if hasattr(torch, "compile"):
        compiling = torch.compile

        @functools.wraps(compiling)
        def compile(*args: Any, **kwargs: Any) -> Any:
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
