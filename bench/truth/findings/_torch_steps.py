"""A small real training for the programs here: the loop's body runs after each of `steps` optimizer steps."""

import os
import time

import torch
from torch import nn

PAUSE = float(os.environ.get("TRUTH_PAUSE", "0"))  # seconds a step, see bench/truth.py --speeds
MiB = 1 << 20


def training(steps=300, work=6):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(steps):
        for _ in range(work):  # a few milliseconds
            images, labels = torch.rand(256, 256), torch.randint(0, 10, (256,))
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
        optimizer.step()
        time.sleep(PAUSE)
        yield step, model
