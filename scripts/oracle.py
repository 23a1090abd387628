"""Drive PyTorch's real caching allocator with made-up programs, and write down what it did.

    python scripts/oracle.py --programs 1000 --seed 1 > programs.jsonl

Runs under a Python that has a CUDA build of torch, on the imaginary GPU (or a real one). Each line is
one program: its settings, what it asked, every event of the allocator's history, its statistics and
its segments at the end. internal/allocator/oracle_test.go plays the same through the model. It
demands that every address, segment, statistic and failure is equal.

Most programs share one process, whose allocator is emptied between them; one in six has its own, for
what counts from a process's beginning or cannot be undone there.

The process starts itself again with the shim (scripts/oracle_shim.c) and the device in front.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

import oracle_programs as do
from oracle_programs import Program

HERE = Path(__file__).resolve().parent
EVENTS = 200  # that a program should have at least

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


def torch_version(torch: Any) -> tuple[int, int]:
    major, minor = torch.__version__.split("+")[0].split(".")[:2]
    return int(major), int(minor)


class Recorder:
    """The allocator of device 0, driven through the cheapest entry points that torch offers."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.version = torch_version(torch)
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
        if not program.fresh:
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
        self.graphs: dict[int, Any] = {}
        self.capturing: Any = None
        self.ids: dict[int, tuple[int, int]] = {}
        done = [self.step(program, op) for op in program.ops]
        snapshot = torch.cuda.memory._snapshot()
        stats = torch.cuda.memory_stats()
        result = {
            "seed": program.seed, "torch": list(self.version), "total": self.total, "capacity": free,
            "fresh": program.fresh, "limited": limited, "oversize": before, "confs": program.confs, "order": program.order,
            "streams": [s.cuda_stream for s in self.streams],
            "pools": {str(k): list(v) for k, v in self.ids.items()},
            "ops": [x for op, keep in zip(program.ops, done) if keep for x in (op + (0,) * 5)[:5]],
            "events": self.events(snapshot), "event_pools": self.event_pools(snapshot), "segments": self.segments(snapshot),
            "stats": {k: v for k, v in stats.items() if isinstance(v, int) and "private_pools" not in k},
        }  # fmt: skip
        if not program.fresh:
            self.clean(program)
        return result

    def step(self, program: Program, op: tuple[int, ...]) -> bool:
        """Do one operation; False where it does not apply, as after a failed allocation."""
        torch, c = self.torch, self.torch._C
        kind = op[0]
        if kind == do.ALLOC:
            _, name, size, stream, tensor = op[:5]
            try:
                if tensor:
                    with torch.cuda.stream(self.streams[stream]):
                        self.live[name] = torch.empty(size, dtype=torch.uint8, device="cuda")
                elif stream == do.CAPTURE_STREAM and self.capturing:
                    with torch.cuda.stream(self.streams[stream]):
                        self.raw[name] = c._cuda_cudaCachingAllocator_raw_alloc(size, self.streams[stream].cuda_stream)
                else:
                    self.raw[name] = c._cuda_cudaCachingAllocator_raw_alloc(size, self.streams[stream].cuda_stream)
            except torch.cuda.OutOfMemoryError:
                pass
        elif kind == do.FREE:
            if op[1] in self.live:
                del self.live[op[1]]
            elif op[1] in self.raw:
                c._cuda_cudaCachingAllocator_raw_delete(self.raw.pop(op[1]))
            else:
                return False
        elif kind == do.RECORD:
            if op[1] not in self.live:
                return False
            self.live[op[1]].record_stream(self.streams[op[2]])
        elif kind == do.EMPTY:
            torch.cuda.empty_cache()
        elif kind == do.GATE:
            self.shim.oracle_gate(self.streams[op[1]].cuda_stream, op[2])
        elif kind == do.CONFIGURE:
            self.configure(program.confs[op[1]])
        elif kind == do.FRACTION:
            torch.cuda.set_per_process_memory_fraction(op[1] / 1e6)
            self.fraction_set = self.version < (2, 13)
        elif kind == do.POOL:
            self.pools[op[1]] = torch.cuda.MemPool()
            self.ids[op[1]] = self.pools[op[1]].id
        elif kind == do.DESTROY:
            del self.pools[op[1]]
        elif kind == do.CAPTURE:
            self.graphs[op[1]], self.capturing = torch.cuda.CUDAGraph(), self.streams[op[2]]
            self.ids[op[1]] = torch.cuda.graph_pool_handle()
            with torch.cuda.stream(self.capturing):
                self.graphs[op[1]].capture_begin(pool=self.ids[op[1]], capture_error_mode="relaxed")
        elif kind == do.CAPTURED:
            with torch.cuda.stream(self.capturing):
                self.graphs[op[1]].capture_end()
            self.capturing = None
        elif kind == do.RELEASE and op[1] in self.graphs:
            self.graphs.pop(op[1]).reset()
        elif kind in (do.BEGIN, do.END, do.RELEASE):
            if op[1] not in self.ids:
                self.ids[op[1]] = (self.next_pool, 0)
                self.next_pool += 1
            pool = self.ids[op[1]]
            if kind == do.BEGIN:
                self.begin(pool)
            elif kind == do.END:
                self.end(pool)
            else:
                c._cuda_releasePool(0, pool)
        elif kind == do.PEAKS:
            torch.cuda.reset_peak_memory_stats()
        elif kind == do.SUMS:
            torch.cuda.reset_accumulated_memory_stats()
        return True

    def events(self, snapshot: dict[str, Any]) -> list[int]:
        flat: list[int] = []
        for e in snapshot["device_traces"][0]:
            flat += (ACTIONS[e["action"]], e.get("addr", 0), e["size"], e["stream"])
        return flat

    def event_pools(self, snapshot: dict[str, Any]) -> list[int]:
        """Of each event the two numbers of its pool; empty where this PyTorch does not say."""
        trace = snapshot["device_traces"][0]
        return [n for e in trace for n in e["pool_id"]] if trace and "pool_id" in trace[0] else []

    def segments(self, snapshot: dict[str, Any]) -> list[int]:
        """Of each segment: address, size, stream, whether it is large, whether it is expandable, its pool, number of
        blocks. Then of each block its size, its state, and what was asked for while it is in use."""
        states = {"inactive": 0, "active_allocated": 1, "active_pending_free": 2}
        flat: list[int] = []
        for s in snapshot["segments"]:
            flat += (s["address"], s["total_size"], s["stream"], int(s["segment_type"] == "large"))
            flat += (int(s["is_expandable"]), *s["segment_pool_id"], len(s["blocks"]))
            for b in s["blocks"]:
                flat += (b["size"], states[b["state"]], b["requested_size"] if states[b["state"]] else 0)
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
        for graph in self.graphs.values():
            graph.reset()
        for name in program.kept:
            if name in self.ids and name not in self.graphs:
                c._cuda_releasePool(0, self.ids[name])
        if self.version >= (2, 13) or self.fraction_set:
            torch.cuda.set_per_process_memory_fraction(1.0)
        self.shim.oracle_capacity(0)
        torch.cuda.empty_cache()  # before the settings change, or counts of oversize segments go wrong
        plain = "expandable_segments:False"
        if self.version >= (2, 9):
            plain += ",graph_capture_record_stream_reuse:False"
        if self.version >= (2, 11):
            plain += ",large_segment_size_mb:20"
        if self.version >= (2, 13):
            plain += ",throw_on_cudamalloc_oom:False"
        self.configure(plain)
        if torch.cuda.memory_reserved():
            raise RuntimeError(f"program {program.seed} left {torch.cuda.memory_reserved()} bytes behind")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=100, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="of the first; program N has seed + N")
    parser.add_argument("--length", type=int, default=200, help="operations a program has at least")
    parser.add_argument("--build", default=str(HERE.parent / "build"), help="folder for the built shim")
    options = parser.parse_args()
    if "ORACLE_SHIM" not in os.environ:
        restart(options)
    seeds = range(options.seed, options.seed + options.programs)
    gc.disable()
    import torch  # once for all processes; nothing touches the device before they part

    shared = []
    for seed in seeds:
        if not is_alone(Program(seed, options.length, torch_version(torch), device_memory())):
            shared.append(seed)
            continue
        sys.stdout.flush()
        child = os.fork()
        if not child:
            record_alone(seed, 4 * options.length)
        if os.waitpid(child, 0)[1]:
            raise RuntimeError(f"program {seed} ended badly")
    recorder = Recorder(torch)
    for number, seed in enumerate(shared):
        for length in (options.length, 2 * options.length):
            result = recorder.play(Program(seed, length, recorder.version, recorder.total))
            if len(result["events"]) >= 4 * EVENTS:
                break
        write(result)
        if number % 100 == 99:
            gc.collect()


def is_alone(program: Program) -> bool:
    """Whether a program gets a process of its own."""
    return is_fresh(program.seed) or program.reserves_in_vain()


def is_fresh(seed: int) -> bool:
    """Whether a program's settings come from the environment: some count from a process's beginning only."""
    return seed % 10 == 0


def device_memory() -> int:
    """The imaginary GPU's memory, without touching it."""
    return int(os.environ["HIGHTIDE_DEVICE_SPEC"].split("memory=")[1].split(";")[0])


def record_alone(seed: int, length: int) -> NoReturn:
    """Play one program in this process, which has not touched the device yet, and end it."""
    status = 1
    try:
        import torch

        program = Program(seed, length, torch_version(torch), device_memory(), fresh=is_fresh(seed))
        if program.fresh:
            os.environ["PYTORCH_CUDA_ALLOC_CONF"] = program.confs[0]
        write(Recorder(torch).play(program))
        sys.stdout.flush()
        status = 0
    except BaseException:
        traceback.print_exc()
    os._exit(status)


def write(result: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(result, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
