"""Trains a small network and runs out of memory, with PyTorch 2.0 or 2.1: writes what their allocator says.

python old.py OUT.pickle, with the imaginary GPU preloaded as README.md says
"""

import pickle
import sys

import torch

memory = torch.cuda.memory
if torch.__version__.startswith("2.0"):
    memory._record_memory_history(True, trace_alloc_max_entries=100000, trace_alloc_record_context=True)
else:
    memory._record_memory_history(max_entries=100000)

net = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for _ in range(4):
    net(torch.zeros(512, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
try:
    kept = [torch.empty(2 << 30, dtype=torch.uint8, device="cuda") for _ in range(20)]
except torch.cuda.OutOfMemoryError as error:
    print(error)
with open(sys.argv[1], "wb") as file:
    pickle.dump(memory._snapshot(), file)
