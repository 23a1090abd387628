"""A CPU-bound PyTorch training on one thread, a block at a time: python loop.py.

A small transformer encoder. For each line on stdin, a number of steps, it takes that many and prints
the seconds they took: of the wall clock, and of this process's processor time. The start, and
40 steps to warm up, are in none of them.
"""

import sys
import time

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, dropout=0.0)
model = nn.Sequential(nn.Embedding(1000, 128), nn.TransformerEncoder(layer, 2), nn.Linear(128, 1000))
optimizer = torch.optim.Adam(model.parameters())
loss_fn = nn.CrossEntropyLoss()
tokens = torch.randint(0, 1000, (4, 33))


def step() -> None:
    optimizer.zero_grad()
    logits = model(tokens[:, :-1])
    loss_fn(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()
    optimizer.step()


def block(steps: int) -> str:
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(steps):
        step()
    return f"{time.perf_counter() - wall} {time.process_time() - cpu}"


block(40)
print("ready", flush=True)
for line in sys.stdin:
    print(block(int(line)), flush=True)
