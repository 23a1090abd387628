"""CuPy on imaginary GPUs: its real pool of device memory, and what was allocated at the peak, by line.

    install (with cupy)   inside ─▶ CUDA's runtime, which its libraries have inside
                          Pool ◀─ a hook of CuPy's own on each thread ─▶ peak, lines

There are no steps: a program runs to its end. What does not come from the pool, as with cupy.cuda.set_allocator(None),
is on the device and of no line.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, Callable, Dict, Iterator, List, Set, Tuple

from .. import snapshots
from ..allocators import ALLOCATED
from ..places import caller
from ..training import Training
from . import inside
from .goals import Goals
from .ledger import Ledger
from .marks import Mark, Marks
from .profile import Place, encoded

# Libraries of CuPy's wheels that have CUDA's runtime inside.
HAVE_RUNTIME = ("cupy_backends.cuda.api.runtime", "cupy.cuda.thrust", "cupy.cuda.cub", "cupy.cuda.jitify",
                "cupy.random._generator_api")  # fmt: skip

Watch = Callable[[str, Callable[[Any], None]], None]


def install(training: Training, cupy: Any, watch: Watch) -> None:
    """With cupy just imported."""
    from . import copies
    from .parts import part

    agent = training.agent

    def outside(module: Any) -> None:
        part(agent, "runtime", lambda: inside.lead_out(agent, "CuPy", module.__file__))

    for name in HAVE_RUNTIME:
        watch(name, outside)
    if copies.asked():  # the driver's state cannot be forked: the engine starts each trial by itself
        agent.fact("no copies", "CuPy has started the device")
        agent.bye()
        os._exit(0)
    pool = Pool()
    part(agent, "lines", lambda: pool.install(cupy.cuda.MemoryHook))
    part(agent, "allocator", lambda: training.allocator("cupy", pool.readings))
    part(agent, "peak", lambda: Peak(training, Ledger(agent), Goals(training), pool).install(training))


class Device:
    """What is in use of one device, and what was at its peak."""

    def __init__(self) -> None:
        self.blocks: Dict[int, Tuple[int, Place]] = {}  # by address: bytes and line
        self.lines: Dict[Place, List[int]] = {}  # blocks and bytes
        self.held = self.peak = 0
        self.at_peak: List[Tuple[Place, int, int]] = []
        self._rose = False

    def taken(self, address: int, size: int, place: Place) -> None:
        """A block of the pool was handed out."""
        self.freed(address)  # on a thread that has no hook
        self.blocks[address] = size, place
        line = self.lines.setdefault(place, [0, 0])
        line[0], line[1] = line[0] + 1, line[1] + size
        self.held += size
        if self.held > self.peak:
            self.peak, self._rose = self.held, True

    def freed(self, address: int) -> None:
        """And given back."""
        size, place = self.blocks.get(address, (0, ("", 0, "")))
        if not size:
            return
        if self._rose and self.held == self.peak:
            self.note()
        del self.blocks[address]
        line = self.lines[place]
        line[0], line[1] = line[0] - 1, line[1] - size
        if not line[0]:
            del self.lines[place]
        self.held -= size

    def note(self) -> None:
        """Keep what is in use, as that of the peak, before something of it goes."""
        if self._rose and self.held == self.peak:
            self._rose, self.at_peak = False, [(place, blocks, bytes) for place, (blocks, bytes) in self.lines.items()]


class Pool:
    """What CuPy's pools hand out, of all devices."""

    def __init__(self) -> None:
        self.devices: Dict[int, Device] = {}
        self._lock = threading.RLock()
        self._hook: Any = None
        self._threads: Set[int] = set()

    def install(self, kind: Any) -> None:
        """Hook into each thread: CuPy's hooks are of one thread alone. `kind`: the class of them."""
        pool = self

        class Hook(kind):  # type: ignore[misc]
            name = "hightide"

            def malloc_postprocess(self, **told: int) -> None:
                if told["mem_ptr"]:
                    place = caller(sys._getframe(1))
                    with pool._lock:
                        pool.devices.setdefault(told["device_id"], Device()).taken(
                            told["mem_ptr"], told["mem_size"], place
                        )

            def free_preprocess(self, **told: int) -> None:
                with pool._lock:
                    pool.devices.setdefault(told["device_id"], Device()).freed(told["mem_ptr"])

        self._hook = Hook()
        self._hook.__enter__()
        run, hook = threading.Thread._bootstrap_inner, self._hook  # type: ignore[attr-defined]

        def _bootstrap_inner(thread: threading.Thread) -> None:
            with hook:
                run(thread)

        threading.Thread._bootstrap_inner = _bootstrap_inner  # type: ignore[attr-defined]

    def readings(self) -> Iterator[Tuple[str, str, int]]:
        """For the counters."""
        with self._lock:
            held = {number: device.held for number, device in self.devices.items()}
        for number, bytes in held.items():
            yield "cuda:%d" % number, ALLOCATED, bytes

    def marks(self) -> List[Mark]:
        """Of each device; what the pool has taken of it the engine reads off the device."""
        with self._lock:
            return [Mark(number, one.held, one.peak, None, None) for number, one in self.devices.items()]

    def profile(self) -> bytes:
        """What held the peaks, by line."""
        with self._lock:
            for one in self.devices.values():
                one.note()
            return encoded(("cuda:%d" % number, *line) for number, one in self.devices.items() for line in one.at_peak)


class Peak(Marks):
    """That of CuPy's pools."""

    framework = "cupy"

    def __init__(self, training: Training, ledger: Ledger, goals: Goals, pool: Pool) -> None:
        super().__init__(training, ledger, goals)
        self.pool = pool

    def read(self) -> List[Mark]:
        """Of each device."""
        return self.pool.marks()

    def tell(self, short: bool) -> None:
        """Write what held the peak."""
        if self.pool.devices:
            snapshots.write(self.agent, "peak", ".pb.gz", "pprof", lambda file: file.write(self.pool.profile()))

    def preallocation(self) -> str:
        """How CuPy takes memory."""
        limit = os.environ.get("CUPY_GPU_MEMORY_LIMIT", "")
        return "none: its pool grows, and keeps what it has" + (
            ", up to %s, as CUPY_GPU_MEMORY_LIMIT says" % limit if limit else ""
        )
