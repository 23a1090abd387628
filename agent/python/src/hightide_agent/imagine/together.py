"""Ranks of one machine agree on the step after which all of them end, so that none waits for another in vain.

At the end of each step a rank writes that step and whether it is steady into its slot of a file that all map.
Then it waits until every other rank has got as far. All then see the same flags and decide alike. Each has two slots,
for even and odd steps: nobody can be two steps ahead of one who still reads.
"""

from __future__ import annotations

import os
import struct
from time import monotonic, sleep
from typing import Any, Optional

from ..agent import Agent

PATIENCE = 120.0  # seconds: a rank that takes fewer steps than the others, or died
_SLOT = struct.Struct("<QQ")  # step, 1 + steady; twice for each rank


class Together:
    """This rank among those that run on this machine."""

    def __init__(self, agent: Agent, torch: Any) -> None:
        self.agent = agent
        self.torch = torch
        self._file: Optional[int] = None
        self._alone = bool(os.environ.get("HIGHTIDE_IMAGINE_PLAY"))
        self._gave_up = False  # then this rank never ends by itself: the others might wait for it

    def all_of_us(self, step: int, steady: bool) -> bool:
        """Whether every rank is steady after this step. Waits for the others."""
        if self._alone:
            return steady
        if self._gave_up:
            return False
        rank, ranks = self._place()
        if ranks < 2:
            return steady
        try:
            return self._agree(step, steady, rank, ranks)
        except OSError as error:
            self.agent.log("could not agree with the other ranks on when to end", error)
            self._gave_up = True
            return False

    def _place(self) -> tuple[int, int]:
        distributed = self.torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            if distributed.get_backend() == "fake":  # its other ranks are nowhere
                return 0, 1
            return distributed.get_rank(), distributed.get_world_size()
        return 0, 1

    def _agree(self, step: int, steady: bool, rank: int, ranks: int) -> bool:
        if self._file is None:
            name = "ranks-%s-%s" % (os.environ.get("TORCHELASTIC_RUN_ID", ""), os.environ.get("MASTER_PORT", ""))
            path = os.path.join(self.agent.folder, "".join(c if c.isalnum() else "-" for c in name))
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        size, parity = _SLOT.size, step % 2
        os.pwrite(self._file, _SLOT.pack(step, 1 + steady), (2 * rank + parity) * size)
        until, all_steady = monotonic() + PATIENCE, steady
        for other in range(ranks):
            while True:
                data = os.pread(self._file, size, (2 * other + parity) * size)
                there, flag = _SLOT.unpack(data) if len(data) == size else (0, 0)
                if there >= step:
                    break
                if monotonic() > until:
                    self.agent.log("rank %d did not come to step %d: the ranks run on to the end" % (other, step))
                    self._gave_up = True
                    return False
                sleep(0.001)
            all_steady = all_steady and flag == 2
        return all_steady
