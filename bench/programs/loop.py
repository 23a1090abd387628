"""A CPU-bound PyTorch training on one thread, timed by itself: python loop.py SECONDS.

A small transformer encoder, its work fixed by a number of steps that is chosen for about SECONDS on
an unloaded core at 5 ms a step. Prints the loop's own seconds, start-up left out.
"""

import sys
import time

import torch
from torch import nn

STEPS = int(float(sys.argv[1]) / 0.005)

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


for _ in range(20):
    step()
begin = time.perf_counter()
for _ in range(STEPS):
    step()
print(time.perf_counter() - begin)
