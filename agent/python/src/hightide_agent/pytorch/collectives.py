"""When this rank comes to where ranks wait for each other, in each step: who comes last is waited for.

    ProcessGroup.allreduce … ─▶ entered.collective    the first of a step that Python calls
    DDP's buffers            ─▶ entered.forward       sent by one rank before the forward pass
    DDP's and FSDP's backward─▶ entered.backward      the last pass of a step: gradients are summed inside it

A moment is a list's item when it passes, and a reading of a series (its value: steps completed) when the tracker next
sees a step's end: a step costs two clock readings. Nothing is wrapped before init_process_group.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Callable, Dict, List, Tuple

from ..channel import monotonic_ns
from ..tracker import NEVER
from ..training import Training
from .modules import Roots

FORWARD, BACKWARD, COLLECTIVE = "entered.forward", "entered.backward", "entered.collective"
CALLS = (
    "allreduce", "allreduce_coalesced", "allgather", "_allgather_base", "allgather_coalesced", "broadcast", "reduce",
    "allgather_into_tensor_coalesced", "gather", "scatter", "reduce_scatter", "_reduce_scatter_base",
    "reduce_scatter_tensor_coalesced", "alltoall", "alltoall_base", "barrier", "monitored_barrier",
)  # fmt: skip
DATA_PARALLEL = ("DistributedDataParallel", "FullyShardedDataParallel")
MOST = 4096  # moments kept where nobody sees a step's end


def install(training: Training, torch: Any, roots: Roots, watch: Callable[[str, Callable[[Any], None]], None]) -> None:
    """Observe when ranks meet, where kernels run: on imagined GPUs times say nothing."""
    if os.environ.get("HIGHTIDE_IMAGINE") == "1":
        return
    found = Collectives(training, torch)
    roots.at_compile.append(found.let_go)
    watch("torch.distributed.distributed_c10d", found.install)
    watch("torch.nn.parallel.distributed", found.install_parallel)
    watch("torch.distributed.fsdp.fully_sharded_data_parallel", found.install_parallel)


class Collectives:
    """The moments of one process."""

    def __init__(self, training: Training, torch: Any) -> None:
        self.training = training
        self.torch = torch
        self._begun = self._compiled = False
        self._sums = self._buffers = self._backward = (
            False  # gradients inside a backward pass; buffers before a forward
        )
        self._wrapped: List[Tuple[Any, str, Any]] = []
        self._forget()
        training.agent.on_renew.append(self._forget)
        training.agent.at_end.append(self._end)

    def _forget(self) -> None:
        self._moments: Dict[str, List[Tuple[int, int]]] = {FORWARD: [], BACKWARD: [], COLLECTIVE: []}

    def _end(self) -> None:
        if self._begun:
            self._tell(0)

    def install(self, module: Any) -> None:
        """Wait for the program to make its process group."""
        original = module.init_process_group

        @functools.wraps(original)
        def init_process_group(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            try:
                self._begin(module)
            except Exception as error:
                self.training.agent.log("could not observe collectives", error)
            return result

        module.init_process_group = init_process_group
        if getattr(self.torch.distributed, "init_process_group", None) is original:
            self.torch.distributed.init_process_group = init_process_group

    def install_parallel(self, module: Any) -> None:
        """Know the wrappers that sum gradients inside a backward pass, which Python does not see."""
        for name in DATA_PARALLEL:
            kind = getattr(module, name, None)
            if kind is None:
                continue
            kind.__init__ = self._made(kind.__init__)
            self._wrap(kind, "_sync_buffers", FORWARD)

    def _begin(self, module: Any) -> None:
        if module.get_world_size() < 2:
            return
        self.training.agent.set_rank(module.get_rank(), module.get_world_size())
        if self._begun:
            return
        self._begun = True
        for name in CALLS:
            self._wrap(module.ProcessGroup, name, COLLECTIVE)
        self.training.at_step_end(self._tell)

    def _made(self, original: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(original)
        def __init__(module: Any, /, *args: Any, **kwargs: Any) -> None:
            original(module, *args, **kwargs)
            if not self._begun:
                return
            try:
                sent = getattr(module, "broadcast_buffers", False) and next(module.buffers(), None) is not None
                self._buffers = self._buffers or sent
                if not self._sums:
                    self._sums, autograd = True, self.torch.autograd
                    autograd.backward = self._entering(BACKWARD, autograd.backward)
                self._see_backward()
            except Exception as error:
                self.training.agent.log("could not observe a data parallel module", error)

        return __init__

    def _entering(self, gate: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """Note when a step first calls a function; of backward passes the last, since those before may sum nothing."""
        tracker, last = self.training.tracker, gate == BACKWARD

        @functools.wraps(original)
        def entering(*args: Any, **kwargs: Any) -> Any:
            moments, step = self._moments[gate], tracker.steps_now()
            if last and not self._backward:
                pass
            elif not moments or moments[-1][0] != step:
                if len(moments) < MOST:
                    moments.append((step, monotonic_ns()))
            elif last:
                moments[-1] = (step, monotonic_ns())
            return original(*args, **kwargs)

        return entering

    def _wrap(self, owner: Any, name: str, gate: str) -> None:
        original = getattr(owner, name, None)
        if original is not None and not self._compiled:
            setattr(owner, name, self._entering(gate, original))
            self._wrapped.append((owner, name, original))

    def let_go(self) -> None:
        """Something is about to be compiled: functions of ours that it could call would be compiled along."""
        self._compiled = True
        while self._wrapped:
            owner, name, original = self._wrapped.pop()
            setattr(owner, name, original)
        self._see_backward()

    def _see_backward(self) -> None:
        """Note backward passes where they are where ranks meet first: not behind buffers that are sent unseen."""
        self._backward = self._sums and not (self._compiled and self._buffers)

    def _tell(self, _: int) -> int:
        """Record the moments of steps that are over."""
        channel, now = self.training.agent.ready(), self.training.tracker.steps_now()
        for gate, moments in self._moments.items():
            over = [moment for moment in moments if moment[0] < now]
            if over and channel is not None:
                series = self.training.allocators.series("", "", gate)
                for step, at in over:
                    channel.counters([(series, step)], at)
            del moments[: len(over)]
        return NEVER
