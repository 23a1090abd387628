"""The training that every planted leak and every innocent here shares: small, real, with steps.

    for step, images in training(300): ...      the loop's body runs after the optimizer's step

Scripts take two arguments: bytes to keep per step, and the number of steps.
"""

import os
import sys
import time

import torch
from torch import nn

PAUSE = float(os.environ.get("TRUTH_PAUSE", "0"))  # seconds a step, see bench/truth.py --speeds
SIZE = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 20
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 300


def training(steps=STEPS):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.Adam(model.parameters())
    loss_fn = nn.CrossEntropyLoss()
    for step in range(steps):
        for _ in range(6):  # a few milliseconds of work
            images, labels = torch.rand(256, 256), torch.randint(0, 10, (256,))
            optimizer.zero_grad()
            loss = loss_fn(model(images), labels)
            loss.backward()
        optimizer.step()
        time.sleep(PAUSE)
        yield step, images
