"""Devices that are not CUDA's (nor ROCm's, which PyTorch calls cuda): XPU, MPS and what else torch.accelerator knows.

    torch.accelerator says which kind this PyTorch is for ─▶ its allocator has begun ─▶ counters ─▶ allocators.py
    "… out of memory. Tried to allocate …" ─▶ an `oom` record

Nothing starts a device. XPU calls back as it starts; the allocator of others is asked at the ends of steps whether it
has begun. Their histories of allocations are not recorded: PyTorch keeps none that hightide reads.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from ..allocators import ALLOCATED, RESERVED
from ..places import text_of
from ..tracker import NEVER
from ..training import Training
from .cuda import readings

if TYPE_CHECKING:
    from .. import oom
    from ..allocators import Reading

WHEN = (1, 2, 3, 10, 100)  # steps at whose ends it is looked whether the device has begun; then each tenfold
_FULL = re.compile(r"\b(XPU|MPS|MTIA)(?: backend)? out of memory")
_ASKED = re.compile(r"[Tt]ried to allocate ([\d.]+) ([KMGT]?)(?:i?B|bytes)")


class Accelerator:
    """The devices of the one kind that this PyTorch is built for."""

    def __init__(self, training: Training, torch: Any) -> None:
        self.training, self.torch, self.agent = training, torch, training.agent
        self.kind = kind(torch)
        self.live = False
        self.agent.on_renew.append(self._forget)

    def install(self) -> None:
        """Wait for the device to begin."""
        if self.kind in ("", "cuda"):
            return
        self.training.out_of_memory(out_of_memory)
        begins = getattr(getattr(self.torch, self.kind, None), "_lazy_call", None)
        if begins is not None:
            begins(self.started)
        self.training.at_step_end(self.step_ended)

    def step_ended(self, step: int) -> int:
        """Look whether the device has begun meanwhile."""
        if not self.live and self._begun():
            self.started()
        if self.live:
            return NEVER
        return next((s for s in WHEN if s > step), step * 10)

    def _begun(self) -> bool:
        begun = getattr(self.torch._C, "_accelerator_isAllocatorInitialized", None)
        if begun is not None and begun():
            return True
        for optimizer in self.training.steps.optimizers():  # MPS has an allocator of its own, which cannot be asked
            for group in getattr(optimizer, "param_groups", ()):
                if any(getattr(p.device, "type", "") == self.kind for p in group["params"]):
                    return True
        return False

    def started(self) -> None:
        """Read its counters from now on. Never raises: XPU calls it within its own start."""
        try:
            self.live = True
            self.agent.framework(
                "torch", str(self.torch.__version__), cuda="none", accelerator=self.kind, device_memory=self._memory()
            )
            self.training.allocator("torch", self.read)
        except Exception as error:
            self.agent.log("could not observe %s" % self.kind, error)

    def _memory(self) -> Optional[Dict[str, int]]:
        """Bytes of each device; None where PyTorch does not say."""
        try:
            if self.kind == "mps":
                return {"mps:0": int(self.torch.mps.recommended_max_memory())}
            ask = self.torch.accelerator.get_memory_info
            return {"%s:%d" % (self.kind, n): int(ask(n)[1]) for n in range(self.torch.accelerator.device_count())}
        except Exception:  # an older PyTorch
            return None

    def read(self) -> List[Reading]:
        """Counters of every device."""
        if not self.live:
            return []
        if self.kind == "mps":
            mps = self.torch.mps
            return [
                ("mps:0", ALLOCATED, int(mps.current_allocated_memory())),
                ("mps:0", RESERVED, int(mps.driver_allocated_memory())),
            ]
        found: List[Reading] = []
        for number in range(self.torch.accelerator.device_count()):
            found += readings("%s:%d" % (self.kind, number), self._stats(number))
        return found

    def _stats(self, number: int) -> Any:
        """Nested, as the device's own module or, from PyTorch 2.9 on, torch.accelerator gives them."""
        own = getattr(getattr(self.torch, self.kind, None), "memory_stats_as_nested_dict", None)
        return own(number) if own is not None else self.torch._C._accelerator_getDeviceStats(number)

    def _forget(self) -> None:
        """A device cannot be used in a forked child."""
        self.live = self.live and self.agent.moving


def kind(torch: Any) -> str:
    """The kind of devices that this PyTorch is built for; "" where it cannot be told, or there is none."""
    if getattr(torch.version, "cuda", None) or getattr(torch.version, "hip", None):
        return "cuda"  # not asked: 2.6 looks for devices to answer, and children that are forked then cannot use them
    try:
        found = torch.accelerator.current_accelerator()
    except Exception:  # before 2.6
        return "xpu" if getattr(torch.version, "xpu", None) else ""
    return "" if found is None else str(found.type)


def out_of_memory(error: BaseException) -> Optional[oom.Shortage]:
    """What PyTorch's allocators of these devices say: which device, and how much was asked for, to two decimals."""
    if not isinstance(error, RuntimeError):
        return None
    text = text_of(error)
    full = _FULL.search(text)
    if full is None:
        return None
    name = full.group(1).lower()
    number = re.search(r"GPU (\d+) has a total capacity", text)
    return "torch." + name, "%s:%s" % (name, number.group(1) if number else "0"), _asked(text)


def _asked(text: str) -> Optional[int]:
    """Bytes. MPS writes GB and means GiB."""
    found = _ASKED.search(text)
    return None if found is None else int(float(found.group(1)) * (1 << 10 * " KMGT".index(found.group(2) or " ")))
