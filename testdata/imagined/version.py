"""Keeps two tensors, and one more that is freed: what each version of PyTorch writes of that. version.py OUT

`scripts/snapshots VERSION…` runs it. 24 MiB less 100 bytes are kept at one line, 5 MiB at another; 3 MiB are
freed, and stay cached. Last, 64 TiB are asked for and refused. PyTorch 1.11 and 1.12 record no lines, so
their files have the segments alone.
"""

import inspect
import pickle
import sys

import torch

memory = torch.cuda.memory


def record():
    """Switches recording on as this version has it; of those without, nothing happens."""
    start = getattr(memory, "_record_memory_history", None)
    if start is None:
        return
    known = inspect.signature(inspect.unwrap(start)).parameters
    if "max_entries" in known or "stacks" in inspect.getsource(memory):  # 2.1 and later
        start(max_entries=1000, stacks="python")
    elif "trace_alloc_max_entries" in known:  # 2.0
        start(True, trace_alloc_max_entries=1000, trace_alloc_record_context=True)
    else:  # 1.13
        start(True)


def weights():
    return torch.empty((24 << 20) - 100, dtype=torch.uint8, device="cuda")


def activations():
    return torch.empty(5 << 20, dtype=torch.uint8, device="cuda")


def scratch():
    return torch.empty(3 << 20, dtype=torch.uint8, device="cuda")


record()
kept = [weights()]
scratch_of_step = scratch()
kept.append(activations())
del scratch_of_step
try:
    torch.empty(1 << 46, dtype=torch.uint8, device="cuda")
except RuntimeError as error:
    print(str(error).split("\n")[0], file=sys.stderr)
snapshot = memory._snapshot() if hasattr(memory, "_snapshot") else memory.memory_snapshot()
with open(sys.argv[1], "wb") as file:
    pickle.dump(snapshot, file, protocol=4)
print(torch.__version__, file=sys.stderr)
