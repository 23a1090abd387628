"""The agent in a process whose GPUs are imaginary: PyTorch, JAX, TensorFlow or CuPy, whose kernels compute nothing.

    begin (at start-up)      sandbox ─▶ writes go elsewhere, or are listed     copies ─▶ one start for many trials
    install (with torch)     known, sizes, reads ─▶ numbers read    weights, lazy ─▶ shapes without bytes
                             ranks ─▶ one rank of many             switches, conditions ─▶ what-ifs, what it rests on
                             steady ─▶ peak, and the end           coverage ─▶ what was not reached
                             reach ─▶ loaders cut to get there     longest ─▶ the largest sample first

That is PyTorch. JAX has xla/, TensorFlow tensorflow/, CuPy cupy.py and inside.py, which share marks.py
and reads.py; all share the ledger, peaks.py, the sandbox and undecided/.

What is asked for comes in the environment, what happened goes out as records of the channel; both are in
docs/formats/imagined.md. Each part is installed for itself, so that trouble with one costs only that one. What a
part changes in the script's world it counts, and names by line.
"""

from __future__ import annotations

import atexit
import os
import time

SETTLE = 0.05
"""Seconds between two looks at autograd's threads at the end of a process."""
SETTLE_AT_MOST = 10.0

TYPE_CHECKING = False  # for type checkers only: importing typing takes longer than all the rest of the start
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

    from ..agent import Agent
    from ..training import Training


class Parts:
    """The parts of the PyTorch adapter that are used here."""

    def __init__(self, torch: Any, roots: Any, models: Any, cuda: Any) -> None:
        self.torch, self.roots, self.models, self.cuda = torch, roots, models, cuda


def wanted() -> bool:
    """Whether this process is imagined."""
    return os.environ.get("HIGHTIDE_IMAGINE") == "1"


def begin(agent: Agent) -> None:
    """At the start of the process, before the script: what must be there before anything is written."""
    from . import copies, sandbox
    from .parts import part

    part(agent, "copies", copies.begin)
    folder = os.environ.get("HIGHTIDE_IMAGINE_SANDBOX")
    if folder:
        part(agent, "sandbox", lambda: sandbox.install(agent, folder))
    else:
        part(agent, "list of written files", lambda: sandbox.list_writes(agent))


def install(training: Training, parts: Parts, watch: Callable[[str, Callable[[Any], None]], None]) -> None:
    """With torch just imported."""
    from .. import levers
    from ..collector import Collector
    from . import (
        conditions,
        copies,
        coverage,
        lazy,
        longest,
        ranks,
        reach,
        sandbox,
        scaling,
        steady,
        switches,
        truncated,
        weights,
    )
    from .device import Device
    from .ledger import Ledger
    from .parts import part

    agent = training.agent
    part(agent, "runtime inside", lambda: _inside(agent, parts.torch))
    part(agent, "garbage", Collector(agent, lambda: training.tracker.device).install)
    atexit.register(settle)
    ledger = Ledger(agent)
    if os.environ.get("HIGHTIDE_PATCH"):
        from ..levers import sites

        part(agent, "sites", lambda: sites.install(parts.torch, watch))

    if os.environ.get("HIGHTIDE_BATCH"):
        from ..levers import owned_batch

        part(agent, "batch", lambda: owned_batch.install(watch, agent.fact))

    def switch() -> None:
        if os.environ.get("HIGHTIDE_IMAGINE_SWITCH"):
            part(agent, "switches", lambda: switches.install(agent, parts.torch))
        if levers.wanted():
            from ..levers import plan

            part(agent, "levers", lambda: plan.install(training, parts.torch, watch))

    device = Device()
    part(agent, "copies", lambda: copies.install(agent, parts.torch, device, switch))
    # An optimizer imports the compiler at its first step, which takes as long as the import of torch.
    watch("torch._dynamo", lambda module: agent.fact("imports", module.__name__))
    seen = coverage.Coverage(training, parts.torch, parts.roots.unused)
    part(agent, "coverage", lambda: watch("torch.utils.data.dataloader", seen.loaders))
    goals = reach.Reach(training, seen, parts.torch)
    part(agent, "goals", lambda: goals.install(watch))
    part(agent, "peak and end", lambda: steady.install(training, ledger, seen, parts, goals))
    if os.environ.get("HIGHTIDE_IMAGINE_LONGEST") == "1":
        part(agent, "longest sample", lambda: watch("torch.utils.data.dataloader", longest.install(agent, seen)))
    part(agent, "known numbers and sizes", lambda: _values(training, ledger, device, parts.torch, watch))
    part(agent, "initialisation on the host", lambda: lazy.install(ledger, parts.torch))
    part(agent, "cut distributions", lambda: watch("torch.nn.init", truncated.install(parts.torch)))
    part(agent, "conditions", lambda: conditions.install(agent, parts))
    for scaler in ("torch.amp.grad_scaler", "torch.cuda.amp.grad_scaler"):
        part(agent, "gradient scalers", lambda name=scaler: watch(name, scaling.install(ledger, device)))  # type: ignore[misc]
    if os.environ.get("HIGHTIDE_IMAGINE_FAKE_WEIGHTS") == "1":
        part(agent, "made-up weights", lambda: weights.install(ledger, parts.torch, watch))
    part(agent, "savers", lambda: sandbox.savers(parts.torch, watch))
    part(agent, "ranks", lambda: ranks.install(ledger, parts.torch, watch))
    switch()


def _values(training: Training, ledger: Any, device: Any, torch: Any, watch: Any) -> None:
    from . import generation, known, sizes

    numbers = known.install(device, torch, watch)
    reads = sizes.install(ledger, device, numbers, torch)
    training.at_requests.append(reads.of_requests)
    watch("transformers.generation.utils", generation.install(ledger, torch, numbers.truth))


def _inside(agent: Agent, torch: Any) -> None:
    """Say of a PyTorch before 2.0 that CUDA's runtime lies in its own library, where its calls do not reach the
    imaginary device: a signal ends the program at the first one."""
    if torch.__version__.startswith("1."):
        with open(os.path.join(os.path.dirname(torch.__file__), "lib", "libc10_cuda.so"), "rb") as file:
            if b"libcudart.so" not in file.read():
                agent.fact("torch.runtime", "inside")


def settle() -> None:
    """Wait at the end of a process until autograd's threads rest.

    Kernels take no time, so that a script can end while such a thread still lets go of its last tensors. Without
    the interpreter's lock, which our sleep gives it, that thread aborts the process.
    """
    before, end = None, time.monotonic() + SETTLE_AT_MOST
    while time.monotonic() < end:
        time.sleep(SETTLE)
        now = _autograd()
        if now is not None and now == before:  # none has run in between
            return
        before = now


def _autograd() -> Optional[list[str]]:
    """How often each of autograd's threads was switched so far; None while one has something to do."""
    switches = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open("/proc/self/task/%s/status" % task) as file:
                status = file.read()
        except OSError:
            continue  # it has just ended
        if status.startswith("Name:\tpt_autograd"):
            if "\nState:\tR" in status:
                return None
            switches.append(task + status.partition("\nvoluntary_ctxt_switches:")[2])
    return switches
