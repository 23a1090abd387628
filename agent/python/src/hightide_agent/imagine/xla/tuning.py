"""Whether XLA tries out kernels as it compiles: here it does not, unless the program or a what-if says so.

Time is not imagined, so a trial finds nothing out: the first of equal kernels is taken. All are compiled for it, which
takes minutes of the host's processors for a step of two layers of attention.
"""

from __future__ import annotations

import functools
import os
import re
from typing import Any, Iterable, Optional

from ...agent import Agent

FLAG = "xla_gpu_autotune_level"
ALL = 4  # XLA's default
SWITCH = "kernels"


class Tuning:
    """What of it holds in this process."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._told: Optional[bool] = None
        self._flipped = SWITCH in os.environ.get("HIGHTIDE_IMAGINE_SWITCH", "").split(",")

    def install(self, compiler: Any) -> None:
        """In options of JAX's compiler."""
        original = compiler.get_compile_options

        @functools.wraps(original)
        def options(*args: Any, **kwargs: Any) -> Any:
            made = original(*args, **kwargs)
            try:
                given = list(made.env_option_overrides)
                level = self._level(str(value) for name, value in given if name == FLAG)
                if level is not None:
                    made.env_option_overrides = [*(one for one in given if one[0] != FLAG), (FLAG, level)]
            except Exception as error:
                self.agent.log("could not say whether XLA tries out kernels", error)
            return made

        compiler.get_compile_options = options

    def by_variable(self) -> None:
        """For all that this process compiles from here on: XLA reads its variable when it first compiles."""
        flags = os.environ.get("XLA_FLAGS", "")
        level = self._level(())
        if level is not None and (not flags or flags.lstrip().startswith("--")):  # else it names a file
            os.environ["XLA_FLAGS"] = ("%s --%s=%d" % (flags, FLAG, level)).strip()

    def _level(self, options: Iterable[str]) -> Optional[int]:
        """What to say beside these; None: nothing, as the program has said it."""
        said = [*re.findall(r"--%s=(\S+)" % FLAG, os.environ.get("XLA_FLAGS", "")), *options]
        tried = (bool(said) and said[-1] != "0") != self._flipped
        self._tell(tried)
        return None if said and not self._flipped else ALL if tried else 0

    def _tell(self, tried: bool) -> None:
        if self._told == tried:
            return
        self._told = tried
        text = "tried out" if tried else "not tried out"
        self.agent.record({"type": "condition", "name": "kernels of XLA", "value": text})
        if self._flipped:
            self.agent.record({"type": "switch", "name": SWITCH, "applied": True, "text": text})
