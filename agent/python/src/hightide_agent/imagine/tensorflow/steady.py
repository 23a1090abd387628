"""The peak of TensorFlow's allocator on each GPU, and what it may take at most.

get_memory_info at each step's end: peak ─▶ allocated        the context's list of devices ─▶ limit
What it took of the device it does not tell; the engine reads that off the device.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Tuple

from ...training import Training
from ..goals import Goals
from ..ledger import Ledger
from ..marks import Mark, Marks
from . import variables
from .profile import Profile
from .programs import Programs

RISE = 1.005  # a peak that rose by less keeps what was told of it


class _Device(NamedTuple):
    """One logical device."""

    name: str  # GPU:0
    number: int  # of the GPU that it is on
    limit: int  # bytes


class _Held(NamedTuple):
    """What one GPU has at the end of a step."""

    peak: int = 0
    held: int = 0
    of: Mapping[str, int] = {}  # what variables take of that, by purpose


class Steady(Marks):
    """Those of TensorFlow."""

    framework = "tensorflow"

    def __init__(self, training: Training, ledger: Ledger, tensorflow: Any, held: Tuple[Profile, Programs],
                 goals: Goals) -> None:  # fmt: skip
        super().__init__(training, ledger, goals)
        self.config = tensorflow.config
        self.profile, self.programs = held
        self._at: Dict[int, _Held] = {}  # of each GPU, at the end of the step in which its peak last rose
        self._of: Tuple[Any, List[_Device]] = None, []  # a context, and its devices

    def forget(self) -> None:
        """In a process that was forked."""
        super().forget()
        self.profile.forget()
        self._of = None, []

    def read(self) -> Iterator[Mark]:
        """Of each GPU; of several logical devices on one, the sum."""
        found: Dict[int, Tuple[int, int, int]] = {}
        info = self.config.experimental.get_memory_info
        for device in self._devices():
            held, allocated, limit = found.get(device.number, (0, 0, 0))
            now = info(device.name)
            held, allocated = held + int(now["current"]), allocated + int(now["peak"])
            found[device.number] = held, allocated, limit + device.limit
        for number, (held, allocated, limit) in found.items():
            yield Mark(number, held, allocated, None, limit or None)

    def step_ended(self, step: int) -> None:
        """Look at all devices; what variables take, where a peak has risen; whether there is more to be profiled."""
        self._rises()
        super().step_ended(step)
        self.profile.step_ended(step, self.peaks.rose())

    def _rises(self) -> None:
        try:
            marks = list(self.read())
            if any(mark.allocated > RISE * self._at.get(mark.device, _Held()).peak for mark in marks):
                of = self._variables()
                self._at = {mark.device: _Held(mark.allocated, mark.held, of.get(mark.device, {})) for mark in marks}
        except Exception as error:
            self.agent.log("could not see what variables take", error)

    def _variables(self) -> Dict[int, Dict[str, int]]:
        """Bytes by purpose of each GPU."""
        numbers = {device.name: device.number for device in self._devices()}
        found: Dict[int, Dict[str, int]] = {}
        for name, sums in variables.by_purpose().items():
            for purpose, bytes in sums.items() if name in numbers else ():
                of = found.setdefault(numbers[name], {})
                of[purpose] = of.get(purpose, 0) + bytes
        return found

    def tell(self, short: bool) -> None:
        """Say what the peak was for, and write what of it is profiled."""
        of: Dict[int, Dict[str, int]] = {} if self._at else self._variables()
        for number, peak in self.peaks.of.items():
            at = self._at.get(number, _Held(of=of.get(number, {})))
            record = dict(at.of) if sum(at.of.values()) <= peak.allocated else {}  # else some were not yet there
            if at.peak and not short:  # short: the step that failed has no end, and what it held between is not known
                record["temporaries"] = peak.allocated - at.held
            record["other"] = max(0, peak.allocated - sum(record.values()))
            self.agent.record({"type": "categories", "device": "cuda:%d" % number, "allocated_bytes": peak.allocated,
                               "short": False, **{name: bytes for name, bytes in record.items() if bytes}})  # fmt: skip
        self.profile.end()
        self.programs.write()

    def preallocation(self) -> str:
        """What the program has set, in code or by a variable."""
        gpus = self.config.get_visible_devices("GPU")
        if any(getattr(one, "memory_limit", None) for gpu in gpus for one in self._logical(gpu)):
            return "what set_logical_device_configuration says, at the start"
        by_variable = os.environ.get("TF_FORCE_GPU_ALLOW_GROWTH", "").lower() in ("true", "1")
        if by_variable or all(self.config.experimental.get_memory_growth(gpu) for gpu in gpus):
            return "none: it grows, and gives nothing back"
        return "nearly all of the memory at the start, which is TensorFlow's default"

    def _logical(self, gpu: Any) -> List[Any]:
        return self.config.get_logical_device_configuration(gpu) or []

    def _devices(self) -> List[_Device]:
        """The logical GPUs, once the program has started them."""
        context = sys.modules["tensorflow.python.eager.context"].context_safe()
        if context is None or not context._initialized:
            return []
        if self._of[0] is not context._handle:
            limits = _limits(context)
            numbers = list(self._numbers())
            names = [device.name.rpartition("device:")[2] for device in self.config.list_logical_devices("GPU")]
            self._of = (
                context._handle,
                [
                    _Device(name, numbers[at] if at < len(numbers) else at, limits.get(name, 0))
                    for at, name in enumerate(names)
                ],
            )
        return self._of[1]

    def _numbers(self) -> Iterator[int]:
        """Of the logical devices in their order: which GPU each is on."""
        all = self.config.list_physical_devices("GPU")
        for gpu in self.config.get_visible_devices("GPU"):
            for _ in range(len(self._logical(gpu)) or 1):
                yield all.index(gpu)


def _limits(context: Any) -> Dict[str, int]:
    """What the allocator of each device may take, as the context has it."""
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.client import pywrap_tf_session as session

    found: Dict[str, int] = {}
    devices = pywrap_tfe.TFE_ContextListDevices(context._handle)
    try:
        for at in range(session.TF_DeviceListCount(devices)):
            name = session.TF_DeviceListName(devices, at).rpartition("device:")[2]
            found[name] = int(session.TF_DeviceListMemoryBytes(devices, at))
    finally:
        session.TF_DeleteDeviceList(devices)
    return found
