"""Run scripts one after the other and write down what the caching allocator did, event by event.

    python record.py FOLDER SCRIPT.py [SCRIPT.py ...]

The same on a real GPU and on an imaginary one. Each script leaves FOLDER/SCRIPT.json, under torchrun one for each
rank, SCRIPT.rankN.json; traces.py reads them. A script that fails leaves what it failed of, and the next one begins.

Three things are taken from chance, which differs from process to process. Python's collector of cycles, which begins when
enough objects have been made, runs at the start of a script and after each step of an optimizer, and at no other
time. What a script leaves is held until its events are written down: else its model is sometimes freed by then, and
sometimes still held by a dictionary of modules. And what torch.autograd.grad returns is held by autograd's own thread too, for as long as
that takes to come round to its next work: it is given some, of no bytes, before the script goes on.
"""

from __future__ import annotations

import gc
import json
import os
import random
import runpy
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

ENTRIES = 4_000_000  # of history, for all scripts together


def begin() -> None:
    """Called by torch within its start of CUDA."""
    torch.cuda.memory._record_memory_history("all", context=None, stacks="python", max_entries=ENTRIES)


def collect(*_: object) -> None:
    """Called by torch after each step of an optimizer."""
    gc.collect()


def settle_autograd() -> None:
    """Let calls that return gradients wait for autograd's thread, which forgets one piece of work before the next."""
    run: Callable[..., tuple[torch.Tensor | None, ...]] = torch.autograd._engine_run_backward

    def and_settle(*args: Any, **options: Any) -> tuple[torch.Tensor | None, ...]:
        result = run(*args, **options)
        ours = threading.current_thread() is threading.main_thread() and not torch._C._len_torch_dispatch_stack()
        if result and ours and torch.cuda.is_initialized():
            with torch.enable_grad():
                root = torch.empty(0, device="cuda", requires_grad=True) * 1
            run((root,), (torch.empty_like(root),), False, False, (), allow_unreachable=True, accumulate_grad=True)
        return result

    torch.autograd._engine_run_backward = and_settle


class Recorder:
    """Cuts the history of all devices at the ends of scripts."""

    def __init__(self) -> None:
        self.done: dict[int, int] = {}  # events of each device that earlier scripts made

    def begin(self) -> None:
        """A fresh start, as far as a process can have one."""
        random.seed(0)
        torch.manual_seed(0)
        torch.set_default_dtype(torch.float32)
        gc.collect()
        if not torch.cuda.is_initialized():
            return
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        for device, history in enumerate(torch.cuda.memory._snapshot()["device_traces"]):
            torch.cuda.reset_peak_memory_stats(device)
            self.done[device] = len(history)

    def devices(self) -> list[dict[str, object]]:
        if not torch.cuda.is_initialized():
            return []
        found = []
        for device, history in enumerate(torch.cuda.memory._snapshot()["device_traces"]):
            events = [e for e in history[self.done.get(device, 0) :] if e["action"] != "snapshot"]
            if events:
                found.append(describe(device, events))
        return found


def describe(device: int, history: list[dict[str, Any]]) -> dict[str, object]:
    """A device, and its events as (action, bytes, number of the stream)."""
    torch.cuda.synchronize(device)
    free, total = torch.cuda.mem_get_info(device)
    stats = torch.cuda.memory_stats(device)
    properties = torch.cuda.get_device_properties(device)
    streams: dict[int, int] = {}
    return {
        "device": device,
        "name": properties.name,
        "total_bytes": properties.total_memory,
        "compute_capability": f"{properties.major}.{properties.minor}",
        "multiprocessors": properties.multi_processor_count,
        "peak_allocated_bytes": stats["allocated_bytes.all.peak"],
        "peak_reserved_bytes": stats["reserved_bytes.all.peak"],
        "used_at_end_bytes": total - free,
        "events": [[e["action"], e["size"], streams.setdefault(e["stream"], len(streams))] for e in history],
    }


def main() -> int:
    folder, *scripts = sys.argv[1:]
    rank = f".rank{os.environ['RANK']}" if "RANK" in os.environ else ""
    versions = {"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}
    torch.cuda._lazy_call(begin)
    gc.disable()
    gc.freeze()  # what was imported; else most of the time goes into looking through it once more
    settle_autograd()
    register_optimizer_step_post_hook(collect)
    recorder = Recorder()
    failed = 0
    for script in map(Path, scripts):
        recorder.begin()
        sys.argv, sys.path[0] = [str(script)], str(script.resolve().parent)
        start, why, left = time.perf_counter(), "", {}
        try:
            left = runpy.run_path(str(script), run_name="__main__")
        except SystemExit as end:
            why = f"exit code {end.code}" if end.code else ""
        except Exception:
            why = traceback.format_exc(limit=-8)
        whole = {"version": 1, "failed": why, "seconds": time.perf_counter() - start, **versions}
        Path(folder, script.stem + rank + ".json").write_text(json.dumps({**whole, "devices": recorder.devices()}))
        left.clear()
        failed += bool(why)
    if torch.cuda.is_initialized():  # who watches would write all of it down once more
        torch.cuda.memory._record_memory_history(enabled=None)
    return failed and len(scripts) == 1


if __name__ == "__main__":
    sys.exit(main())
