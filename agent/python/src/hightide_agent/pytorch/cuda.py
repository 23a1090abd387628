"""CUDA: counters, the allocator's history, and the flight recorder. All of it waits for torch's own start of
CUDA; a script that never uses a GPU never touches one because of us.

    torch.cuda._lazy_init ─▶ history on, observer attached, sampling begins
    out of memory ─▶ observer ─▶ snapshot file, `snapshot` and `oom` records ─▶ the exception goes its way
"""

from __future__ import annotations

import os
import sys
import threading
from typing import IO, TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple

from .. import snapshots
from ..allocators import ACTIVE, ALLOCATED, INACTIVE_SPLIT, OOMS, REQUESTED, RESERVED, RETRIES
from ..places import caller
from ..training import Training
from .history import History
from .owners import Owners

if TYPE_CHECKING:
    from ..allocators import Reading

RING_BYTES = 32 << 20  # of the allocator's history, for each device
FIRST = (1, 2, 3, 10, 100, 1000)  # steps at whose ends gradients and optimizer state are looked for
ENTRY_BYTES = 1100  # one event with its share of Python stacks

# Where memory_stats keeps each quantity, in its nested form.
COUNTERS = (
    (ALLOCATED, ("allocated_bytes", "all", "current")),
    (RESERVED, ("reserved_bytes", "all", "current")),
    (ACTIVE, ("active_bytes", "all", "current")),
    (INACTIVE_SPLIT, ("inactive_split_bytes", "all", "current")),
    (REQUESTED, ("requested_bytes", "all", "current")),
    (RETRIES, ("num_alloc_retries",)),
    (OOMS, ("num_ooms",)),
)


def readings(device: str, stats: Any) -> Iterator[Reading]:
    """What an allocator's nested statistics say of a device; a quantity that they do not have is left out."""
    for quantity, path in COUNTERS:
        value: Any = stats
        for key in path:
            value = value.get(key, {}) if isinstance(value, dict) else None
        if isinstance(value, int):
            yield device, quantity, value


def _size(size: float) -> str:
    """Bytes for people, as the report writes them: "19.5 MiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    digits = 0 if unit == "B" or size >= 100 else 1 if size >= 10 else 2
    return "%.*f %s" % (digits, size, unit)


class NoCompiler:
    """Stands in the place of torch._inductor, where nobody has imported that, while this thread asks for a snapshot.

    PyTorch looks there for the sources of compiled code. Without compiled code there are none, and that import takes
    more than a second and much of the host's memory. Whoever else asks for the module gets it.
    """

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.thread = 0

    def __enter__(self) -> None:
        if "torch._inductor" not in sys.modules:
            self.thread = threading.get_ident()
            vars(self.torch).setdefault("_inductor", self)

    def __exit__(self, *_: object) -> None:
        if vars(self.torch).get("_inductor") is self:
            del self.torch._inductor

    def __getattr__(self, name: str) -> Any:
        if name == "codecache" and threading.get_ident() == self.thread:
            raise AttributeError(name)
        import importlib

        return getattr(importlib.import_module("torch._inductor"), name)


class Cuda:
    """The devices of this process, from the moment torch has started CUDA."""

    def __init__(self, training: Training, torch: Any, owners: Owners) -> None:
        self.agent = training.agent
        self.owners = owners
        self.training = training
        self.tracker = training.tracker
        self.torch = torch
        self.live = False
        self._ooms = 0
        self.wanted = snapshots.Wanted(self.agent)
        self.each_step = False  # whether to look for owners at every step's end
        self.ring_bytes = RING_BYTES
        self.history: Optional[History] = None
        self.agent.on_renew.append(self._forget)

    def install(self) -> None:
        """Wait for torch to start CUDA."""
        if getattr(self.torch.version, "cuda", None) is None and getattr(self.torch.version, "hip", None) is None:
            return
        self.training.at_step_end(self.step_ended)
        self.agent.at_end.append(self.program_ended)
        if not self.wanted.never:
            self._watch_history()
        self.torch.cuda._lazy_call(self.started)

    def started(self) -> None:
        """Called by torch within its own start of CUDA. Never raises."""
        try:
            self.live = True
            if not self.wanted.never:
                self._record_history()
            self.agent.framework(
                "torch", str(self.torch.__version__), cuda=getattr(self.torch.version, "cuda", None) or "none",
                hip=getattr(self.torch.version, "hip", None), devices=self.torch._C._cuda_getDeviceCount(),
                device_memory=self._memory(), arch_list=self._architectures(),
            )  # fmt: skip
            self.training.allocator("torch", self.read, self.current)
            self.training.snapshots["torch"] = self.snapshot
        except Exception as error:
            self.agent.log("could not observe CUDA", error)

    def _architectures(self) -> str:
        """What the build has kernels for, "sm_80 sm_90 compute_90"; "" where it does not say. Before CUDA has
        started, torch would take the question for a start, and refuse CUDA to children that are forked."""
        flags: Any = getattr(self.torch._C, "_cuda_getArchFlags", None)
        return str(flags() or "") if flags is not None else ""

    def _memory(self) -> Optional[Dict[str, int]]:
        """Bytes of each device, as far as this process may use it: None where torch does not say."""
        try:
            of = self.torch.cuda.get_device_properties
            return {"cuda:%d" % n: int(of(n).total_memory) for n in range(self.torch._C._cuda_getDeviceCount())}
        except Exception as error:
            self.agent.log("could not ask how much memory the devices have", error)
            return None

    def read(self) -> List[Reading]:
        """Allocator counters of every device."""
        if not self.live:
            return []
        found: List[Reading] = []
        for device in range(self.torch._C._cuda_getDeviceCount()):
            found += readings("cuda:%d" % device, self.torch._C._cuda_memoryStats(device))
        return found

    def current(self) -> Tuple[int, int]:
        """Allocated and reserved bytes of the current device."""
        stats = self.torch._C._cuda_memoryStats(self.torch._C._cuda_getDevice())
        return stats["allocated_bytes"]["all"]["current"], stats["reserved_bytes"]["all"]["current"]

    def step_ended(self, step: int) -> Optional[int]:
        """Write the snapshots that were asked for at this step; the next step at which there is something to do."""
        reason = self.wanted.reason(step)
        if self.live and (self.each_step or step in FIRST):
            self.owners.look()
        if self.live and reason:
            self.snapshot(reason)
        return None if self.each_step else self.wanted.next(step, FIRST)

    def program_ended(self) -> None:
        """Write the snapshot that was asked for at the end."""
        if self.live and self.wanted.at_exit:
            self.snapshot("exit")

    def snapshot(self, reason: str) -> Any:
        """Write the allocator's state and history into HIGHTIDE_OUT and say so; the snapshot, if there is one. Never
        raises."""
        return snapshots.write(self.agent, reason, ".pickle", "torch-pickle", self._dump, self._write_owners)

    def _dump(self, file: IO[bytes]) -> Any:
        import pickle

        with NoCompiler(self.torch):
            snapshot = self.history.snapshot() if self.history is not None else self.torch.cuda.memory._snapshot()
        if os.environ.get("HIGHTIDE_IMAGINE") == "1" and isinstance(snapshot, dict):
            snapshot["hightide_label"] = "imagined"  # the file may be read far from its recording
        pickle.dump(snapshot, file, protocol=4)
        return snapshot

    def _write_owners(self, path: str) -> None:
        try:
            self.owners.look(search=True)
            self.owners.write(path)
        except Exception as error:
            self.agent.log("could not write whose memory a snapshot shows", error)

    def _watch_history(self) -> None:
        try:
            self.history = History(self.torch, self.entries, self.snapshot)
            self.history.watch()
        except Exception as error:  # a very old torch
            self.history = None
            self.agent.log("could not see whether the program records the allocator's history", error)

    def _record_history(self) -> None:
        try:
            if self.history is None:
                return
            self.history.start()
            self.agent.fact("allocator_history_bytes", self.ring_bytes)  # or the growth is taken for the program's
            self.torch._C._cuda_attach_out_of_memory_observer(self._out_of_memory)
        except Exception as error:  # an old torch, or cudaMallocAsync
            self.agent.log("could not switch the allocator's history on", error)

    def entries(self) -> int:
        """How many events of the allocator's history are kept for the report, of each device."""
        return self.ring_bytes // ENTRY_BYTES

    def _out_of_memory(self, device: int, asked: int, total: int, free: int) -> None:
        """Called by the allocator in the failing thread, before the exception is made."""
        try:
            self._ooms += 1
            had = "%s of %s were free" % (_size(free), _size(total))
            limited = self._limited(device)
            if limited or free > total:  # then the second is what the program allowed
                had = "it may have %s in all, and %s were free" % (_size(total), _size(free))
            file, line, function = caller(sys._getframe().f_back)
            if not file:  # a thread of autograd: the line that waits for it
                file, line, function = caller(self.tracker.quick.inside)
            record: Dict[str, Any] = {
                "type": "oom", "source": "torch.cuda", "device": "cuda:%d" % device, "bytes": asked, "file": file,
                "line": line, "function": function,
                "text": "the allocator asked the device for %s; %s" % (_size(asked), had),
            }  # fmt: skip
            if limited:
                record["own_limit_bytes"] = total
            step = self.tracker.current_step()
            if step >= 0:
                record["step"] = step
            self.agent.record(record)
            if self._ooms <= 2:  # a loop that tries smaller batches would write one file for each try
                self.snapshot("oom-%d" % self._ooms)
        except Exception as error:
            self.agent.log("could not record an out-of-memory error", error)

    def _limited(self, device: int) -> bool:
        """Whether the program limits itself to a part of the device (set_per_process_memory_fraction)."""
        fraction = getattr(self.torch._C, "_cuda_getMemoryFraction", None)
        return fraction is not None and fraction(device) < 1

    def _forget(self) -> None:
        """In a forked child CUDA cannot be used."""
        self.live = self.live and self.agent.moving
