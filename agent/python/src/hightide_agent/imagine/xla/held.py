"""What held a device's memory at its peak: arrays by the line that made them, and the program that ran, if one did.

    a call, and the peak has risen ─▶ JAX's profile of what is alive, its arguments' purposes, its temporaries
    a call that found no memory    ─▶ the same, of what it needed
    the end                        ─▶ one of the two as files and `categories` records

XLA gives a program its results and temporaries before it runs. So what is alive after the call that raised the peak,
and the program's temporaries, are what was alive at the peak.
"""

from __future__ import annotations

import math
import sys
from typing import IO, Any, Dict, List, Optional, Tuple

from ... import snapshots
from ...agent import Agent
from .dumps import Dumps
from .purposes import INPUTS, PARAMETERS, STATE, Gradients, purposes

RISE = 1.005  # a peak that rose by less keeps what was told of it


class _Look:
    """What was alive at one moment, by device, and for which call."""

    def __init__(self, before: Optional[_Look] = None) -> None:
        self.profile: bytes = sys.modules["jax"].profiler.device_memory_profile()
        self.program = ""  # the file of the program that ran
        # Of each device bytes by argument and result, the call that these are of, and all that was in use.
        self.records: Dict[int, Tuple[_Sums, Optional[Call], int]] = dict(before.records) if before is not None else {}


class Held:
    """That of all devices of this process."""

    def __init__(self, agent: Agent, dumps: Dumps, gradients: Gradients) -> None:
        self.agent = agent
        self.dumps, self.gradients = dumps, gradients
        self._devices: List[Any] = []
        self._peaks: Dict[int, int] = {}  # by the number of a device
        self._used: Dict[int, int] = {}  # before the call that runs
        self._looked: Dict[int, int] = {}  # at which its profile was taken
        self._peak: Optional[_Look] = None
        self._short: Optional[_Look] = None  # the last call that found no memory
        self._told: Optional[_Look] = None

    def forget(self) -> None:
        """In a process that was forked."""
        self.__init__(self.agent, self.dumps, self.gradients)  # type: ignore[misc]

    def devices(self) -> List[Any]:
        """The GPUs, once the program has started them; asking would start them."""
        bridge = sys.modules.get("jax._src.xla_bridge")
        if not self._devices and bridge is not None and getattr(bridge, "_backends", None):
            self._devices = [d for d in sys.modules["jax"].local_devices() if d.platform == "gpu"]
        return self._devices

    def look(self, call: Optional[Call] = None) -> None:
        """See whether a peak has risen: in this call, or before it where there is none."""
        risen = {}
        for device in self.devices():
            stats, number = device.memory_stats() or {}, device.local_hardware_id or 0
            peak = stats.get("peak_bytes_in_use", 0)
            if call is None:
                self._used[number] = stats.get("bytes_in_use", 0)
            if peak > self._peaks.get(number, 0):
                self._peaks[number] = peak
                if peak >= RISE * self._looked.get(number, 0):
                    self._looked[number] = peak
                    risen[device] = peak
        if risen:
            self._peak = self._taken(_Look(self._peak), risen, call)

    def in_use(self) -> int:
        """Bytes in use on the fullest device before the call that runs."""
        return max(self._used.values() or [0])

    def failed(self, call: Call) -> None:
        """Look at what this call needed: it found no memory. Its results had memory until then, or never."""
        more = call.program.results + call.program.temporaries if call.program is not None else 0
        needed = {d: self._used.get(d.local_hardware_id or 0, 0) + more for d in self.devices()}
        self._short = self._taken(_Look(), needed, call)
        for sums, *_ in self._short.records.values():
            for place in [place for place in sums.of if place[0] == "result"]:
                del sums.of[place]

    def _taken(self, look: _Look, devices: Dict[Any, int], call: Optional[Call]) -> _Look:
        live, places = _live(), call.places(self.gradients) if call is not None else {}
        look.program = self.dumps.of.get(call.executable, "") if call is not None else ""
        for device, bytes in devices.items():
            sums = _Sums(device, live, places)
            if call is not None:
                sums.passed = call.passed(device)
            look.records[device.local_hardware_id or 0] = sums, call, bytes
        return look

    def tell(self, short: bool) -> None:
        """Record what held the last peak, once; `short`: what was needed when memory ran out, where that is known."""
        look = self._short if short and self._short is not None else self._peak
        if look is None or self._told is look:
            return
        self._told = look
        for number, (sums, call, bytes) in look.records.items():
            record = call.resolved(sums) if call is not None else {}
            all = bytes if look is self._short else self._peaks[number]
            if look is self._short and call is not None and call.program is not None:
                record["results"] = call.program.results
            record["other"] = max(0, all - sum(record.values()))
            if look is self._peak and call is not None and call.program is not None:
                record["unasked_bytes"] = max(0, all - sums.all - sums.passed - call.program.temporaries)
            self.agent.record({"type": "categories", "device": "cuda:%d" % number, "allocated_bytes": all,
                               "short": look is self._short, **record})  # fmt: skip
        snapshots.write(self.agent, "peak", ".pb.gz", "pprof", lambda file: _write(file, look.profile))
        self.write_program("peak", look.program)

    def write_program(self, reason: str, path: str) -> None:
        """Write the program in a file of ours, if XLA told it."""
        if not path:
            return
        with open(path, "rb") as file:
            data = file.read()
        snapshots.write(self.agent, reason, ".hlo.pb", "hlo", lambda file: _write(file, data))


class Call:
    """One call of a compiled function, while it is told of; it keeps none of the arrays."""

    def __init__(self, executable: Any, args: Any, results: Any, program: Any, frame: Any) -> None:
        self.executable, self.args, self.results, self.program, self.frame = executable, args, results, program, frame
        self.donated = False
        self.known: Dict[int, str] = {}  # by the place of an argument, what its type or its gradient tells

    def places(self, gradients: Gradients) -> Dict[int, Tuple[str, int]]:
        """Its arguments and results by their ids; and what is known of arguments."""
        found: Dict[int, Tuple[str, int]] = {}
        if self.program is None:
            return found
        by_type, positions = purposes(self.frame), self.program.positions
        derived = gradients.arguments.get(self.program.function.source, ())
        for at, array in enumerate(self.args):
            found[id(array)] = "argument", at
            if (at < len(positions) and positions[at] in derived) or gradients.has(array):
                self.known[at] = PARAMETERS
            elif id(array) in by_type:
                self.known[at] = by_type[id(array)]
        for at, array in enumerate(self.results):
            found.setdefault(id(array), ("result", at))
        self.donated = any(_is_deleted(array) for array in self.args)
        return found

    def passed(self, device: Any) -> int:
        """Bytes of arguments that lie on the host: they have memory on a device for this call alone."""
        arrays = [array for array in self.args if hasattr(array, "is_deleted")]
        if self.program is None or len(arrays) == len(self.args):
            return 0
        known = sum(
            math.prod(array.sharding.shard_shape(array.shape)) * array.dtype.itemsize
            for array in arrays
            if device in array.sharding.device_set
        )
        return max(0, int(self.program.sizes["argument_bytes"] - known))

    def close(self) -> None:
        """Let go of arrays and frames."""
        self.args = self.results = self.frame = self.executable = None

    def resolved(self, sums: _Sums) -> Dict[str, int]:
        """Bytes by what they are for, with what later calls have told: which results came back, as which arguments."""
        if self.program is None:
            return {}
        back = self.program.function.back
        record = {"temporaries": self.program.temporaries, INPUTS: sums.passed}
        for (kind, at), bytes in sums.of.items():
            if kind == "result" and not (self.donated and at in back):
                name = "results"
            else:
                at = back[at] if kind == "result" else at
                name = self.known.get(at, STATE if at in back.values() else INPUTS)
                if name == INPUTS and self.program.function.calls < 2:
                    continue  # what comes back is not known yet
            record[name] = record.get(name, 0) + bytes
        return {name: bytes for name, bytes in record.items() if bytes}


class _Sums:
    """Bytes on a device: by argument and result, of all arrays that are alive, and of arguments that lie on the host. A
    buffer that several arrays have is one."""

    def __init__(self, device: Any, live: List[Any], places: Dict[int, Tuple[str, int]]) -> None:
        self.of: Dict[Tuple[str, int], int] = {}
        self.all = self.passed = 0
        seen = set()
        for array in sorted(live, key=lambda array: id(array) not in places):
            place = places.get(id(array))
            for shard in shards(array):
                pointer = shard.data.unsafe_buffer_pointer() if shard.device is device else None
                if pointer is not None and pointer not in seen:
                    seen.add(pointer)
                    self.all += shard.data.nbytes
                    if place is not None:
                        self.of[place] = self.of.get(place, 0) + shard.data.nbytes


def shards(array: Any) -> List[Any]:
    """Its parts on this process's devices. JAX 0.4 keeps them with the array, which they keep: it would never end."""
    kept = "addressable_shards" in array.__dict__
    found: List[Any] = array.addressable_shards
    if not kept:
        array.__dict__.pop("addressable_shards", None)
    return found


def _is_deleted(array: Any) -> bool:
    return hasattr(array, "is_deleted") and bool(array.is_deleted())  # what lies on the host has none


def _live() -> List[Any]:
    return [array for array in sys.modules["jax"].live_arrays() if not array.is_deleted()]


def _write(file: IO[bytes], data: bytes) -> bool:
    file.write(data)
    return True
