"""Prints what a small torch training holds at its end: python resident.py.

The resident set from the kernel, after garbage collection, at the same point of the same work.
"""

import gc
import resource

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(200):
    optimizer.zero_grad()
    model(torch.rand(64, 256)).sum().backward()
    optimizer.step()
gc.collect()
with open("/proc/self/statm") as file:
    print(int(file.read().split()[1]) * resource.getpagesize())
