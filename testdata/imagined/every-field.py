"""Makes a snapshot with something in every field that this PyTorch writes: every-field.py OUT [EVENTS].

Two devices, steps with annotations, several streams, a private pool, a captured graph, pinned host
memory, metadata, a compile context, an out-of-memory; EVENTS is the size of the ring that the trace is
kept in. See README.md for how it is run.
"""

import inspect
import sys

import torch

memory = torch.cuda.memory
source = inspect.getsource(memory)
wanted = {"compile_context": True, "global_record_annotations": True, "record_pinned_host_memory": True}
options = {name: value for name, value in wanted.items() if f"{name}:" in source}
memory._record_memory_history(max_entries=int(sys.argv[2]) if len(sys.argv) > 2 else 100_000, **options)

if hasattr(torch._C, "_set_memory_metadata"):
    torch._C._set_memory_metadata({"phase": "training"})
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    with torch.profiler.record_function(f"## step {step} ##"):
        model(torch.randn(256, 512, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

with torch.cuda.stream(torch.cuda.Stream()):
    elsewhere = torch.empty(3 << 20, device="cuda")
    elsewhere.record_stream(torch.cuda.default_stream())
del elsewhere
pinned = torch.empty(1 << 20, pin_memory=True)
with torch.cuda.use_mem_pool(torch.cuda.MemPool()):
    pooled = torch.empty(5 << 20, device="cuda")
held = torch.zeros(1 << 20, device="cuda")
with torch.cuda.graph(torch.cuda.CUDAGraph()):
    doubled = held * 2
second = torch.empty(1 << 22, device="cuda:1")
try:
    torch.empty(1 << 42, device="cuda")
except torch.OutOfMemoryError:
    pass
if hasattr(memory, "_annotate_tensor"):
    memory._annotate_tensor(second, "the second device's")
memory._dump_snapshot(sys.argv[1])
