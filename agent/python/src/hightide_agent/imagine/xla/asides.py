"""Evaluations and checkpoints of a training with JAX, of which nothing else tells.

between two steps a function is given at least half of what the step hands on, and a batch besides ─▶ its results are
    small, and the next step is given nothing that came of them ─▶ an evaluation
at least half of what the step handed on was copied to the host, or a checkpointer was called ─▶ a checkpoint
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Callable, Dict, List, Set

from ...agent import Agent
from ...places import caller
from ..goals import Goals
from .held import shards

SAVERS = {  # methods of a library whose own copies do not read the arrays themselves, by module
    "orbax.checkpoint._src.checkpointers.checkpointer": ("Checkpointer", "save"),
    "orbax.checkpoint._src.checkpointers.async_checkpointer": ("AsyncCheckpointer", "save"),
    "orbax.checkpoint.checkpoint_manager": ("CheckpointManager", "save"),
}

SMALLEST = 256  # bytes of an array that is looked at


class Asides:
    """What a program does between its steps."""

    def __init__(self, agent: Agent, goals: Goals) -> None:
        self.agent = agent
        self.goals = goals
        self._handed = 0  # bytes that the last step gave to be handed on
        self._state: List[Any] = []  # these arrays, weakly
        self._places: Dict[int, int] = {}  # their bytes by address, once one is asked for
        self._left = 0  # of these that are not copied yet, beyond the half
        self._calls: Set[Any] = set()  # functions that were called since, as evaluations are

    def install(self, watch: Callable[[str, Callable[[Any], None]], None]) -> None:
        """See copies to the host and savers, where a checkpoint is a goal."""
        if "checkpoint" not in self.goals.missing:
            return
        watch("jax._src.array", self._copies)
        for module, (kind, name) in SAVERS.items():
            watch(module, functools.partial(self._saver, kind, name))

    def wanted(self) -> bool:
        """Whether there is still something to look for."""
        return bool(self.goals.missing)

    def stepped(self, came: Set[Any], told: bool, handed: int) -> None:
        """A step begins whose arguments came of these functions, if that is `told`. `handed`: bytes that the step
        before gave it."""
        for function in self._calls if told else ():
            if function not in came:
                name, file, line = function.place
                self.goals.reached("evaluation", "calls of %s (%s:%d)" % (name, os.path.basename(file), line))
        self._calls.clear()
        self._places.clear()
        self._handed, self._state = handed, []

    def gave(self, results: List[Any]) -> None:
        """The step gave these to be handed on, weakly."""
        self._state = results

    def called(self, program: Any, given: int, besides: bool) -> None:
        """Another function was called with so many bytes of what a step handed on; `besides`: and something else."""
        if besides and self._handed and 2 * given >= self._handed > 2 * program.sizes["output_bytes"]:
            self._calls.add(program.function)

    def _copies(self, module: Any) -> None:
        kind = module.ArrayImpl
        original = kind._value

        def value(array: Any) -> Any:
            if self._handed and array.nbytes >= SMALLEST and "checkpoint" in self.goals.missing:
                try:
                    self._copied(array)
                except Exception as error:
                    self.agent.log("could not look at a copy to the host", error)
            return original.fget(array)

        kind._value = property(value)

    def _copied(self, array: Any) -> None:
        if not self._places:
            for reference in self._state:
                known = reference()
                for shard in shards(known) if known is not None and not known.is_deleted() else ():
                    self._places[shard.data.unsafe_buffer_pointer()] = shard.data.nbytes
            if not self._places:
                return
            self._left = sum(self._places.values()) // 2
        for shard in shards(array):
            self._left -= self._places.pop(shard.data.unsafe_buffer_pointer(), 0)
        if self._left <= 0:
            file, line, _ = caller(sys._getframe(1))
            self.goals.reached("checkpoint", "copies to the host (%s:%d)" % (os.path.basename(file), line))

    def _saver(self, kind: str, name: str, module: Any) -> None:
        owner = getattr(module, kind, None)
        original = getattr(owner, name, None)
        if original is None:
            return

        @functools.wraps(original)
        def save(*args: Any, **kwargs: Any) -> Any:
            self.goals.reached("checkpoint", "%s.%s of Orbax" % (kind, name))
            return original(*args, **kwargs)

        setattr(owner, name, save)
