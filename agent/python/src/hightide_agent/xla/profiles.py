"""Arrays that are alive on JAX's devices, by the lines that made them, as JAX's own device memory profile has them.

--snapshot-on step:N, exit, oom; hightide.snapshot() ─▶ jax.profiler.device_memory_profile ─▶ a pprof file of the run
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import IO, Any, Optional

from .. import oom, snapshots
from ..training import Training


class Profiles:
    """Those of this process, once the program has started a device."""

    def __init__(self, training: Training) -> None:
        self.agent = training.agent
        self.training = training
        self.wanted = snapshots.Wanted(self.agent)
        self._live = False
        self._ooms = 0
        self.agent.on_renew.append(self._forget)

    def _forget(self) -> None:
        self._live = self._live and self.agent.moving

    def install(self) -> None:
        """Wait for steps, errors, and the end: before JAX gives its devices back, which it does at exit, too."""
        self.training.at_step_end(self.step_ended)
        oom.recorded["jax"] = self.out_of_memory
        atexit.register(self.program_ended, os.getpid())

    def started(self) -> None:
        """A program was compiled, so the devices run."""
        if not self._live:
            self._live = True
            self.training.snapshots["jax"] = self.snapshot

    def step_ended(self, step: int) -> int:
        """Write the profile that was asked for at this step; the next step at which there may be one."""
        reason = self.wanted.reason(step)
        if reason and self._live:
            self.snapshot(reason)
        return self.wanted.next(step)

    def program_ended(self, pid: int) -> None:
        """Look at the exception that nobody caught, and write what was asked for at the end."""
        if not self._live or os.getpid() != pid:
            return
        error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        if error is not None:
            oom.notice(self.agent, error, self.training.tracker.current_step())
        if self.wanted.at_exit:
            self.snapshot("exit")

    def out_of_memory(self) -> None:
        """Write one as JAX has run out, while the exception keeps what its functions hold; a loop gets two at most."""
        self._ooms += 1
        if self._live and not self.wanted.never and self._ooms <= 2:
            self.snapshot("oom-%d" % self._ooms)

    def snapshot(self, reason: str) -> Optional[bool]:
        """Write what is alive now; None where it cannot be."""
        return snapshots.write(self.agent, reason, ".pb.gz", "pprof", _dump)


def _dump(file: IO[bytes]) -> bool:
    profile: Any = sys.modules["jax"].profiler.device_memory_profile()
    file.write(profile)
    return True
