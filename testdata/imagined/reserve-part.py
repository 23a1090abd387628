"""Blocks of many sizes in expandable segments side by side; see README.md."""

import random

import torch

torch.cuda.memory._record_memory_history(max_entries=100000)
chance = random.Random(1)
keep = []
for _ in range(300):
    if keep and chance.random() < 0.45:
        keep.pop(chance.randrange(len(keep)))
    else:
        size = chance.choice([512, 4096, 1 << 20, 3 << 20, 7 << 20, 21 << 20]) * chance.randint(1, 2) // 2
        keep.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
torch.cuda.memory._dump_snapshot("reserve-part.pickle")
