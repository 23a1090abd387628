"""Drive PyTorch's real caching allocator with made-up programs, and write down what it did.

    python scripts/oracle.py --programs 1000 --seed 1 > programs.jsonl

Runs under a Python that has a CUDA build of torch, on the imaginary GPU (or a real one). Each line is
one program: its settings, what it asked, every event of the allocator's history, its statistics and
its segments at the end. internal/allocator/oracle_test.go plays the same through the model and
demands that every address, segment, statistic and failure is equal.

The process starts itself again with the shim (scripts/oracle_shim.c) and the device in front.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MIB = 1 << 20

# Operations, as oracle_test.go reads them: five integers each.
ALLOC, FREE, RECORD, EMPTY, GATE, CONFIGURE, FRACTION, BEGIN, END, RELEASE, PEAKS, SUMS, POOL, DESTROY = range(14)
ACTIONS = {
    "alloc": 1, "free_requested": 2, "free_completed": 3, "segment_alloc": 4, "segment_free": 5,
    "segment_map": 6, "segment_unmap": 7, "oom": 8, "snapshot": 9,
}  # fmt: skip


def restart(options: argparse.Namespace) -> None:
    """Start this script again with the shim and the device loaded in front of everything."""
    shim = Path(options.build) / "oracle_shim.so"
    source = HERE / "oracle_shim.c"
    if not shim.exists() or shim.stat().st_mtime < source.stat().st_mtime:
        shim.parent.mkdir(parents=True, exist_ok=True)
        fresh = shim.with_suffix(f".{os.getpid()}")
        subprocess.run(["gcc", "-O2", "-fPIC", "-shared", "-o", fresh, source, "-ldl"], check=True)
        fresh.replace(shim)
    environment = dict(os.environ, ORACLE_SHIM=str(shim), TORCH_CPP_LOG_LEVEL="ERROR")
    inherited = environment.get("LD_PRELOAD", "")
    environment["LD_PRELOAD"] = f"{shim}:{inherited}" if inherited else str(shim)
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)


class Recorder:
    """The allocator of device 0, driven through the cheapest entry points that torch offers."""

    def __init__(self) -> None:
        import torch

        self.torch = torch
        major, minor = torch.__version__.split("+")[0].split(".")[:2]
        self.version = int(major), int(minor)
        torch.cuda.init()
        torch.cuda.set_device(0)
        self.shim = ctypes.CDLL(os.environ["ORACLE_SHIM"])
        self.shim.oracle_capacity.argtypes = [ctypes.c_uint64]
        self.shim.oracle_capacity.restype = ctypes.c_uint64
        self.shim.oracle_order.argtypes = [ctypes.c_int, ctypes.c_uint64]
        self.shim.oracle_gate.argtypes = [ctypes.c_uint64, ctypes.c_int]
        self.total = torch.cuda.get_device_properties(0).total_memory
        self.streams = [torch.cuda.default_stream()] + [torch.cuda.Stream() for _ in range(3)]
        self.fraction_set = False
        self.next_pool = 1000
        torch.cuda.empty_cache()

    def configure(self, conf: str) -> None:
        c = self.torch._C
        if hasattr(c, "_accelerator_setAllocatorSettings"):
            c._accelerator_setAllocatorSettings(conf)
        else:
            c._cuda_cudaCachingAllocator_set_allocator_settings(conf)

    def begin(self, pool: tuple[int, int]) -> None:
        c = self.torch._C
        if hasattr(c, "_cuda_beginAllocateCurrentThreadToPool"):
            c._cuda_beginAllocateCurrentThreadToPool(0, pool)
        else:
            c._cuda_beginAllocateToPool(0, pool)

    def end(self, pool: tuple[int, int]) -> None:
        c = self.torch._C
        (getattr(c, "_cuda_endAllocateToPool", None) or c._cuda_endAllocateCurrentStreamToPool)(0, pool)

    def play(self, program: Program) -> dict[str, Any]:
        """Run a program on an empty allocator and return what happened."""
        torch, _c = self.torch, self.torch._C
        self.configure(program.confs[0])
        free, limited = self.shim.oracle_capacity(program.capacity), self.fraction_set
        self.shim.oracle_order(program.order, program.seed)
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.reset_accumulated_memory_stats()
        # A count that went wrong when max_split_size changed between an allocation and its free stays wrong.
        before = [torch.cuda.memory_stats().get(f"oversize_{what}.current", 0) for what in ("allocations", "segments")]
        torch.cuda.memory._record_memory_history(None)
        torch.cuda.memory._record_memory_history("all", context=None, stacks="python")
        self.live: dict[int, Any] = {}
        self.raw: dict[int, int] = {}
        self.pools: dict[int, Any] = {}
        self.ids: dict[int, tuple[int, int]] = {}
        done = [self.step(program, op) for op in program.ops]
        snapshot = torch.cuda.memory._snapshot()
        stats = torch.cuda.memory_stats()
        result = {
            "seed": program.seed, "torch": list(self.version), "total": self.total, "capacity": free,
            "limited": limited, "oversize": before, "confs": program.confs, "order": program.order,
            "streams": [s.cuda_stream for s in self.streams],
            "pools": {str(k): list(v) for k, v in self.ids.items()},
            "ops": [x for op, keep in zip(program.ops, done) if keep for x in (op + (0,) * 5)[:5]],
            "events": self.events(snapshot), "segments": self.segments(snapshot),
            "stats": {k: v for k, v in stats.items() if isinstance(v, int)},
        }  # fmt: skip
        self.clean(program)
        return result

    def step(self, program: Program, op: tuple[int, ...]) -> bool:
        """Do one operation; False where it does not apply, as after a failed allocation."""
        torch, c = self.torch, self.torch._C
        kind = op[0]
        if kind == ALLOC:
            _, name, size, stream, tensor = op[:5]
            try:
                if tensor:
                    with torch.cuda.stream(self.streams[stream]):
                        self.live[name] = torch.empty(size, dtype=torch.uint8, device="cuda")
                else:
                    self.raw[name] = c._cuda_cudaCachingAllocator_raw_alloc(size, self.streams[stream].cuda_stream)
            except torch.OutOfMemoryError:
                pass
        elif kind == FREE:
            if op[1] in self.live:
                del self.live[op[1]]
            elif op[1] in self.raw:
                c._cuda_cudaCachingAllocator_raw_delete(self.raw.pop(op[1]))
            else:
                return False
        elif kind == RECORD:
            if op[1] not in self.live:
                return False
            self.live[op[1]].record_stream(self.streams[op[2]])
        elif kind == EMPTY:
            torch.cuda.empty_cache()
        elif kind == GATE:
            self.shim.oracle_gate(self.streams[op[1]].cuda_stream, op[2])
        elif kind == CONFIGURE:
            self.configure(program.confs[op[1]])
        elif kind == FRACTION:
            torch.cuda.set_per_process_memory_fraction(op[1] / 1e6)
            self.fraction_set = self.version < (2, 15)
        elif kind == POOL:
            options = {}
            if op[2] & 1:
                options["no_split"] = True
            if op[2] & 2:
                options["use_on_oom"] = True
            self.pools[op[1]] = torch.cuda.MemPool(**options)
            self.ids[op[1]] = self.pools[op[1]].id
        elif kind == DESTROY:
            del self.pools[op[1]]
        elif kind in (BEGIN, END, RELEASE):
            if op[1] not in self.ids:
                self.ids[op[1]] = (self.next_pool, 0)
                self.next_pool += 1
            pool = self.ids[op[1]]
            if kind == BEGIN:
                self.begin(pool)
            elif kind == END:
                self.end(pool)
            else:
                c._cuda_releasePool(0, pool)
        elif kind == PEAKS:
            torch.cuda.reset_peak_memory_stats()
        elif kind == SUMS:
            torch.cuda.reset_accumulated_memory_stats()
        return True

    def events(self, snapshot: dict[str, Any]) -> list[int]:
        flat: list[int] = []
        for e in snapshot["device_traces"][0]:
            flat += (ACTIONS[e["action"]], e.get("addr", 0), e["size"], e["stream"])
        return flat

    def segments(self, snapshot: dict[str, Any]) -> list[int]:
        """Of each segment: address, size, number of blocks; then size and state of each block."""
        states = {"inactive": 0, "active_allocated": 1, "active_pending_free": 2}
        flat: list[int] = []
        for s in snapshot["segments"]:
            flat += (s["address"], s["total_size"], len(s["blocks"]))
            for b in s["blocks"]:
                flat += (b["size"], states[b["state"]])
        return flat

    def clean(self, program: Program) -> None:
        """Leave the allocator as a new one would be."""
        torch, c = self.torch, self.torch._C
        for s in self.streams:
            self.shim.oracle_gate(s.cuda_stream, 1)
        self.live.clear()
        for pointer in self.raw.values():
            c._cuda_cudaCachingAllocator_raw_delete(pointer)
        self.raw.clear()
        self.pools.clear()
        for name in program.kept:
            if name in self.ids:
                c._cuda_releasePool(0, self.ids[name])
        if self.version >= (2, 15) or self.fraction_set:
            torch.cuda.set_per_process_memory_fraction(1.0)
        self.shim.oracle_capacity(0)
        if any("expandable_segments:True" in conf for conf in program.confs):
            # Address space whose first page could not be mapped stays reserved until it was used once.
            self.configure("expandable_segments:True")
            for stream in self.streams:
                for size in (1, 3 * MIB):
                    c._cuda_cudaCachingAllocator_raw_delete(
                        c._cuda_cudaCachingAllocator_raw_alloc(size, stream.cuda_stream)
                    )
            self.configure(program.confs[0])
        torch.cuda.empty_cache()  # before the settings change, or counts of oversize segments go wrong
        self.configure("expandable_segments:False" + (",large_segment_size_mb:20" if self.version >= (2, 11) else ""))
        if torch.cuda.memory_reserved():
            raise RuntimeError(f"program {program.seed} left {torch.cuda.memory_reserved()} bytes behind")


class Program:
    """A made-up program: what it sets, what it asks for, in which order."""

    def __init__(self, seed: int, length: int, version: tuple[int, int], total: int) -> None:
        self.random = random.Random(seed)
        self.seed, self.length, self.version, self.total = seed, length, version, total
        self.ops: list[tuple[int, ...]] = []
        self.kept: list[int] = []  # pools with a user at the end
        self.sizes: dict[int, int] = {}
        self.names = 0
        self.live: list[int] = []
        self.scope = 0
        r = self.random
        self.style = r.choice(["mixed", "training", "stack", "serving", "small", "tight", "tight"])
        self.streams = r.choice([1, 1, 2, 4])
        self.record = self.streams > 1 and r.random() < 0.6
        self.uses_pools = r.random() < 0.25
        self.order = r.choice([0, 1, 2, 3])
        self.capacity = 0
        self.odd = False
        if self.style == "tight" or r.random() < 0.25:
            self.capacity = r.randrange(30, 400) * 2 * MIB
        self.confs = [self.conf(True)]
        if not self.uses_pools and r.random() < 0.1:
            self.confs.append(self.conf(False))
        self.write()

    def conf(self, first: bool) -> str:
        """One line of settings. The first states all that would survive from an earlier program."""
        r = self.random
        parts = []
        large = 20
        if self.version >= (2, 11) and first:
            large = r.choice([20, 20, 20, 11, 16, 32, 64, 21])
            self.odd = large % 2 == 1  # no device maps pages of that size
            parts.append(f"large_segment_size_mb:{large}")
        # With private pools, PyTorch's own count of a pool's pages goes wrong and an assertion ends the
        # process once their memory is given back.
        parts.append(f"expandable_segments:{not self.uses_pools and not self.odd and r.random() < 0.35}")
        if not first:
            return ",".join(parts[-1:])
        if r.random() < 0.3:
            least = large if self.version >= (2, 11) else large + 1
            parts.append(
                f"max_split_size_mb:{r.choice([least, large + 1, 32, 48, 64, 100]) if large <= 32 else large + 8}"
            )
            if r.random() < 0.4 or self.version < (2, 11):  # earlier ones keep what was set before
                parts.append(f"max_non_split_rounding_mb:{least + r.choice([0, 1, 12, 100])}")
        if r.random() < 0.35:
            one = str(r.choice([1, 2, 4, 8, 16]))
            listed = (
                "[" + ",".join(f"{1 << b}:{r.choice([0, 1, 2, 4, 8])}" for b in sorted(r.sample(range(8), 3))) + ",>:2]"
            )
            parts.append(f"roundup_power2_divisions:{r.choice([one, listed])}")
        if r.random() < 0.4:
            parts.append(f"garbage_collection_threshold:{r.choice([0.2, 0.5, 0.6, 0.8, 0.95])}")
        return ",".join(parts)

    def write(self) -> None:
        r = self.random
        if r.random() < 0.35:
            top = self.capacity or self.total
            self.ops.append((FRACTION, int(1e6 * min(1.0, r.uniform(0.3, 1.1) * min(top, 800 * MIB) / self.total))))
        getattr(self, {"tight": "mixed"}.get(self.style, self.style))()
        if self.scope:
            self.ops.append((END, self.scope))

    def size(self) -> int:
        r = self.random
        kind = r.random()
        if self.style == "small":
            return r.choice([r.randrange(1, 4096), r.randrange(1, 200_000), 512, 1024, r.randrange(1, MIB + 2)])
        if kind < 0.25:
            return r.randrange(1, 8192)
        if kind < 0.4:
            return r.choice(
                [512, 513, MIB, MIB + 1, MIB - 511, 2 * MIB, 10 * MIB, 10 * MIB - 1, 10 * MIB - 512, 20 * MIB, 19 * MIB]
            )
        if kind < 0.6:
            return r.randrange(1, 2 * MIB)
        if kind < 0.85:
            return r.randrange(MIB, 24 * MIB)
        return r.randrange(10 * MIB, r.choice([40, 130]) * MIB)

    def alloc(self, size: int | None = None) -> int:
        r = self.random
        self.names += 1
        name = self.names
        stream = r.randrange(self.streams) if r.random() < 0.4 else 0
        size = size or self.size()
        tensor = int(self.record and r.random() < 0.5)
        self.ops.append((ALLOC, name, size, stream, tensor))
        self.live.append(name)
        # Earlier versions remember uses inside a pool's scope by the address of a C++ object, which may be
        # another block's by the time it is freed.
        if tensor and (not self.scope or self.version >= (2, 15)):
            for _ in range(r.choice([0, 1, 1, 2])):
                self.ops.append((RECORD, name, r.randrange(self.streams)))
        return name

    def free(self, at: int = -1) -> None:
        self.ops.append((FREE, self.live.pop(at)))

    def aside(self) -> None:
        """Now and then something else than allocations."""
        r = self.random
        if r.random() < 0.02 and (not self.scope or self.version >= (2, 15)):  # earlier ones refuse it there
            self.ops.append((EMPTY,))
        if self.record and r.random() < 0.08:
            self.ops.append((GATE, r.randrange(self.streams), r.randrange(2)))
        if r.random() < 0.005:
            self.ops.append((r.choice([PEAKS, SUMS]),))
        if len(self.confs) > 1 and r.random() < 0.01:
            self.ops.append((CONFIGURE, 1))
        if self.uses_pools and r.random() < 0.06:
            self.pool()

    def pool(self) -> None:
        r = self.random
        if self.scope:
            self.ops.append((END, self.scope))
            self.scope = 0
        elif self.kept and r.random() < 0.3:
            self.ops.append((RELEASE, self.kept.pop(r.randrange(len(self.kept)))))
        else:
            # A pool whose last user went must not be used again.
            self.scope = r.choice(self.kept) if self.kept and r.random() < 0.6 else len(self.ops) + 1
            self.ops.append((BEGIN, self.scope))
            self.kept.append(self.scope)

    def mixed(self) -> None:
        r = self.random
        goal = r.choice([5, 20, 60])
        while len(self.ops) < self.length:
            self.aside()
            if not self.live or r.random() < goal / (goal + len(self.live)):
                self.alloc()
            else:
                self.free(r.randrange(len(self.live)))

    small = mixed

    def stack(self) -> None:
        r = self.random
        while len(self.ops) < self.length:
            for _ in range(r.randrange(1, 15)):
                self.alloc()
                self.aside()
            for _ in range(r.randrange(1, len(self.live) + 1)):
                self.free()

    def training(self) -> None:
        """Parameters, activations freed backwards while gradients come, states of an optimizer."""
        r = self.random
        layers = [self.size() for _ in range(r.randrange(3, 12))]
        for size in layers:
            self.alloc(size)
        states = False
        while len(self.ops) < self.length:
            batch = r.choice([1, 1, 1, 2])
            kept = len(self.live)
            for size in layers:
                self.alloc(max(1, size * batch // r.choice([1, 2, 4])))
                self.alloc(r.randrange(1, 4 * MIB))
                if r.random() < 0.5:
                    self.free()
                self.aside()
            gradients = 0
            while len(self.live) - gradients > kept:
                self.free(
                    kept + r.randrange(len(self.live) - kept - gradients)
                    if r.random() < 0.1
                    else len(self.live) - 1 - gradients
                )
                if gradients < len(layers):
                    self.alloc(layers[-1 - gradients])
                    gradients += 1
            if not states:
                states = True
                kept += 2 * len(layers)
                for size in layers * 2:
                    self.alloc(size)
                    self.live.insert(0, self.live.pop())
            while len(self.live) > kept:
                self.free()
            self.aside()

    def serving(self) -> None:
        """Requests that grow step by step and end in any order."""
        r = self.random
        running: list[list[int]] = []
        while len(self.ops) < self.length:
            self.aside()
            if len(running) < 6 and r.random() < 0.3:
                running.append([])
            for request in running:
                old = request[-1] if request else r.randrange(1, 3 * MIB)
                self.alloc(old + old // 8 + 512)
                request.append(old + old // 8 + 512)
                if len(self.live) > 12:
                    self.free(r.randrange(len(self.live) - 1))
            running = [q for q in running if r.random() < 0.9]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=100, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="of the first; program N has seed + N")
    parser.add_argument("--length", type=int, default=260, help="operations a program has at least")
    parser.add_argument("--build", default=str(HERE.parent / "build"), help="folder for the built shim")
    options = parser.parse_args()
    if "ORACLE_SHIM" not in os.environ:
        restart(options)
    recorder = Recorder()
    gc.disable()
    for number in range(options.programs):
        program = Program(options.seed + number, options.length, recorder.version, recorder.total)
        sys.stdout.write(json.dumps(recorder.play(program), separators=(",", ":")) + "\n")
        if number % 100 == 99:
            gc.collect()


if __name__ == "__main__":
    main()
